package source

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

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
	notifies

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

func (s *sqlite) dialect() dialect { return dialect{"?1", `"`, " NULLS FIRST"} }

func (s *sqlite) query(ctx context.Context, statement string, values ...any) (rows, error) {
	result, err := s.tx.QueryContext(ctx, statement, values...)
	if err != nil {
		return nil, err
	}
	r := &sqliteRows{scannedRows{Rows: result}}
	if err := r.describe(); err != nil {
		return nil, err
	}
	return r, nil
}

type sqliteRows struct{ scannedRows }

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

// bound is false for times, which the driver makes of texts.
func (r *sqliteRows) bound(column int) (any, bool) {
	_, is := r.values[column].(time.Time)
	return r.values[column], !is
}
