"""JSON: writing and reading nested objects, with the parts in C and without them."""
import json
from json import decoder, encoder, scanner

rows = [
    {
        "id": i,
        "name": f"row {i * 7919 % 1000}",
        "tags": [f"tag{j}" for j in range(i % 7)],
        "price": i / 8,
        "nested": {"even": i % 2 == 0, "none": None, "text": "a \"quoted\" line\n" * (i % 3)},
    }
    for i in range(4000)
]
for indent in (None, 2, None, 1):
    text = json.dumps(rows, indent=indent, sort_keys=True)
    rows = json.loads(text)
    print(len(text), sum(row["id"] for row in rows), rows[-1]["name"])

decode = decoder.JSONDecoder()
decode.parse_string = decoder.py_scanstring
decode.scan_once = scanner.py_make_scanner(decode)
encode = encoder.JSONEncoder(indent=1)
encoder.c_make_encoder = None
for _ in range(2):
    text = encode.encode(rows[:1500])
    print(len(text), len(decode.decode(text)))
