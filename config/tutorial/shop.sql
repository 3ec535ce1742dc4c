CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
  id int PRIMARY KEY,
  customer_id int NOT NULL REFERENCES customers,
  status text NOT NULL,
  amount numeric(10, 2) NOT NULL
);
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace');
INSERT INTO orders VALUES (10, 1, 'new', 25.00), (11, 1, 'new', 7.50), (12, 2, 'new', 99.90);
