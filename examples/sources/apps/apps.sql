CREATE TABLE apps (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  image TEXT NOT NULL,
  replicas INTEGER,
  settings JSON
);
INSERT INTO apps VALUES
  (1, 'shop', 'registry.example.com/shop:1.0', 3, '{"example.com/team": "checkout"}'),
  (2, 'blog', 'registry.example.com/blog:2.1', NULL, NULL);
