# Counts words and sums up lengths of lines by how they are indented.
NR > 25000 { exit }
{
    match($0, /^ */)
    lengths[RLENGTH] += length($0)
    n = split($0, parts, /[^A-Za-z_]+/)
    for (i = 1; i <= n; i++) if (length(parts[i]) > 3) count[tolower(parts[i])]++
}
END {
    for (word in count) { distinct++; if (count[word] > count[best]) best = word }
    print distinct, best, count[best]
    for (indent = 0; indent <= 16; indent += 4) printf "%d %d %.3f\n", indent, lengths[indent], log(1 + lengths[indent])
}
