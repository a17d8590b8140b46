GRANT SELECT, INSERT, UPDATE, DELETE ON platform.* TO platform@'%';
