-- Inserts: many rows one by one into tables with an index, and changes to them.
PRAGMA journal_mode = OFF;
CREATE TABLE items(id INTEGER PRIMARY KEY, name TEXT, price REAL, shelf INTEGER);
CREATE INDEX by_name ON items(name);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO items SELECT i, 'item ' || (i * 7919 % 60000), i * 0.25, i % 97 FROM n;
COMMIT;
UPDATE items SET price = price * 1.1 WHERE shelf < 10;
DELETE FROM items WHERE shelf = 11;
SELECT count(*), sum(id), round(sum(price), 2), min(name), max(name) FROM items;
