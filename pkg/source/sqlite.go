package source

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"

	modernc "modernc.org/sqlite" // registers the driver
	sqlite3 "modernc.org/sqlite/lib"
)

// OpenSQLite opens a file that exists, for one connection. options are those of the driver's URL: mode=ro or mode=rw at least.
func OpenSQLite(ctx context.Context, path, options string) (*sql.DB, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // SQLite would wait for whoever writes a named pipe
		return nil, errors.New("it is not a regular file")
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(5000)&"+options)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// SQLite reads a file; its DSN is the path.
func SQLite(ctx context.Context, path string, _ *Options) (Connection, error) {
	db, err := OpenSQLite(ctx, path, "mode=ro&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	if err := bound(ctx, db); err != nil {
		_ = db.Close()
		return nil, err
	}
	return &sqlite{db: db}, nil
}

// bound makes SQLite refuse values that are too large to be kept in memory.
func bound(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	_, err = modernc.Limit(conn, sqlite3.SQLITE_LIMIT_LENGTH, maxValueBytes)
	return errors.Join(err, conn.Close())
}

type sqlite struct {
	db *sql.DB
	tx *sql.Tx
}

func (s *sqlite) begin(ctx context.Context) (err error) {
	s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	return err
}

func (s *sqlite) end(context.Context) error { return s.tx.Rollback() } // nothing was written

func (s *sqlite) close() { _ = s.db.Close() } // whatever the error, it is of no further use

func (s *sqlite) position(context.Context) (*position, error) { return nil, nil }

func (s *sqlite) placeholder() string { return "?1" }

func (s *sqlite) wait(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *sqlite) query(ctx context.Context, statement string, values ...any) (rows, error) {
	result, err := s.tx.QueryContext(ctx, statement, values...)
	if err != nil {
		return nil, err
	}
	r := &sqliteRows{Rows: result}
	if r.types, err = result.ColumnTypes(); err != nil {
		r.close()
		return nil, err
	}
	for _, t := range r.types {
		r.names = append(r.names, t.Name())
	}
	r.values, r.into = make([]any, len(r.names)), make([]any, len(r.names))
	for i := range r.values {
		r.into[i] = &r.values[i]
	}
	return r, nil
}

type sqliteRows struct {
	*sql.Rows

	types  []*sql.ColumnType
	names  []string
	values []any
	into   []any
	failed error
}

func (r *sqliteRows) columns() []string { return r.names }

func (r *sqliteRows) next() bool {
	if r.failed != nil || !r.Next() {
		return false
	}
	r.failed = r.Scan(r.into...)
	return r.failed == nil
}

// value goes by the declared types JSON and BOOLEAN: SQLite stores text and integers.
func (r *sqliteRows) value(column int) (any, error) {
	typeName := strings.ToUpper(r.types[column].DatabaseTypeName())
	switch v := r.values[column].(type) {
	case string:
		if typeName == "JSON" {
			return fromJSON(v)
		}
	case int64:
		if strings.HasPrefix(typeName, "BOOL") && (v == 0 || v == 1) {
			return v == 1, nil
		}
	}
	return plain(r.values[column])
}

// converts is true for the types of which the driver makes times.
func (r *sqliteRows) converts(column int) bool {
	switch strings.ToUpper(r.types[column].DatabaseTypeName()) {
	case "DATE", "DATETIME", "TIME", "TIMESTAMP":
		return true
	}
	return false
}

func (r *sqliteRows) err() error {
	if r.failed != nil {
		return r.failed
	}
	return r.Err()
}

func (r *sqliteRows) close() { _ = r.Close() } // err returns what went wrong
