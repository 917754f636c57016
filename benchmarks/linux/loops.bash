# Loops, arithmetic, strings, arrays and functions, without other processes.
is_prime() {
    local n=$1 d
    for ((d = 2; d * d <= n; d++)); do
        ((n % d)) || return 1
    done
}
count=0
for ((n = 2; n < 2500; n++)); do
    is_prime $n && ((count++))
done
echo "$count primes"
declare -A seen
word=abcdefghij
for i in {1..6000}; do
    key=${word:i%7:3}$((i % 50))
    seen[$key]=$((${seen[$key]:-0} + i))
done
echo "${#seen[@]} keys, ${seen[abc0]-none}, ${seen[bcd1]}"
text=
i=0
until ((i == 15000)); do
    ((i += 1))
    [[ $i == *7*9* ]] && text+=${i: -1}
done
printf '%d %s\n' ${#text} "${text:0:40}"
