CREATE TABLE apps (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  image TEXT NOT NULL,
  replicas INTEGER,
  settings JSON,
  state TEXT,
  message TEXT
);
INSERT INTO apps (id, name, image, replicas, settings) VALUES
  (1, 'shop', 'registry.example.com/shop:1.0', 3, '{"example.com/team": "checkout"}'),
  (2, 'blog', 'registry.example.com/blog:2.1', NULL, NULL);
