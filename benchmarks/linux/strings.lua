-- String work: building, splitting, patterns, sorting, formatting.
local words = {}
local state = 12345
local function random(limit)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 65536 % limit
end
for i = 1, 12000 do
  local letters = {}
  for j = 1, 3 + random(8) do letters[j] = string.char(97 + random(26)) end
  words[i] = table.concat(letters)
end
local text = table.concat(words, " ")
for round = 1, 8 do
  local counts, distinct = {}, {}
  for word in text:gmatch("%a+") do
    if not counts[word] then distinct[#distinct + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  table.sort(distinct)
  local vowels = select(2, text:gsub("[aeiou]", ""))
  text = text:gsub("(%a)(%a+)", function(first, rest) return rest .. first end)
  print(string.format("%d %d words, %s to %s, %d vowels, %q",
    round, #distinct, distinct[1], distinct[#distinct], vowels, text:sub(1, 20):upper()))
end
print(#text:rep(10):reverse(), text:find("zz", 1, true))
