package source

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// OpenSQLite opens a file that exists, for one connection at a time, which is not kept: each use opens what is at the
// path then, since a file may be replaced. options are those of the driver's URL: mode=ro or mode=rw at least.
func OpenSQLite(ctx context.Context, path, options string) (*sql.DB, error) {
	url := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(5000)&" + options
	db := sql.OpenDB(&sqliteFile{path: path, url: url})
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(0)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// sqliteFile opens connections to a file.
type sqliteFile struct {
	driver    modernc.Driver
	path, url string
}

// Connect implements driver.Connector.
func (f *sqliteFile) Connect(context.Context) (driver.Conn, error) {
	// SQLite would wait for whoever writes a named pipe
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return f.driver.Open(f.url)
}

// Driver implements driver.Connector.
func (f *sqliteFile) Driver() driver.Driver { return &f.driver }

// IsBusy reports whether a file is locked by another connection, which may let go of it.
func IsBusy(err error) bool {
	var answer *modernc.Error
	return errors.As(err, &answer) && (answer.Code()&0xff == sqlite3.SQLITE_BUSY ||
		answer.Code()&0xff == sqlite3.SQLITE_LOCKED)
}

// SQLite reads a file; its DSN is the path.
func SQLite(ctx context.Context, path string, _ *Options) (Connection, error) {
	db, err := OpenSQLite(ctx, path, "mode=ro&_pragma=query_only(1)")
	if err != nil {
		return nil, err
	}
	return &sqlite{path: path, db: db}, nil
}

type sqlite struct {
	notifies

	path string
	db   *sql.DB
	// conn and tx are those of the transaction, file is what was at the path before it was opened for that.
	conn *sql.Conn
	tx   *sql.Tx
	file os.FileInfo
}

func (s *sqlite) begin(ctx context.Context) (err error) {
	if s.file, err = os.Stat(s.path); err != nil {
		var failed *fs.PathError
		if errors.As(err, &failed) {
			err = failed.Err // without the path
		}
		return fmt.Errorf("unable to open database file: %w", err)
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	// Values that are too large to be kept in memory are refused.
	if _, err = modernc.Limit(s.conn, sqlite3.SQLITE_LIMIT_LENGTH, maxValueBytes); err == nil {
		s.tx, err = s.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	}
	if err != nil {
		_ = s.conn.Close()
	}
	return err
}

// end ends the transaction, in which nothing was written.
func (s *sqlite) end(context.Context) error { return errors.Join(s.tx.Rollback(), s.conn.Close()) }

func (s *sqlite) close() { _ = s.db.Close() } // whatever the error, it is of no further use

func (s *sqlite) position(context.Context) (*position, error) { return &position{file: s.file}, nil }

func (s *sqlite) dialect() dialect { return dialect{"?1", `"`, " NULLS FIRST"} }

func (s *sqlite) query(ctx context.Context, statement string, values ...any) (rows, error) {
	result, err := s.tx.QueryContext(ctx, statement, values...)
	if err != nil {
		return nil, explainSQLite(err)
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
	_, isTime := r.values[column].(time.Time)
	return r.values[column], !isTime
}

func (r *sqliteRows) err() error {
	if r.failed != nil {
		return r.failed
	}
	return explainSQLite(r.Err())
}
