# Edits a text line by line, with the hold space.
s/\([A-Za-z_][A-Za-z_0-9]*\)(\([^()]*\))/\2->\1/g
s/self\.//g
/^ *#/d
/^$/{
    N
    s/\n/ /
}
y/abcdef/ABCDEF/
/return/{
    x
    G
    s/^\(.\{0,60\}\).*\n/\1 | /
}
