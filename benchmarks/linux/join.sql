-- A join of two tables, with groups and an order.
CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT, town INTEGER);
CREATE TABLE orders(id INTEGER PRIMARY KEY, person INTEGER, amount INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO people SELECT i, printf('person %05d', i * 31 % 5000), i % 40 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO orders SELECT i, i * 7919 % 5000 + 1, i * 104729 % 1000 FROM n;
CREATE INDEX by_person ON orders(person);
SELECT town, count(*), sum(amount), max(name) FROM people JOIN orders ON orders.person = people.id
  GROUP BY town ORDER BY sum(amount) DESC LIMIT 10;
SELECT name, total FROM
  (SELECT p.name, sum(o.amount) AS total FROM orders o, people p WHERE p.id = o.person AND o.amount > 500
   GROUP BY p.id) ORDER BY total DESC, name LIMIT 10;
