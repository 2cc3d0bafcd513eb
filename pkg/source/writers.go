package source

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// PostgresWriter writes to a PostgreSQL database.
func PostgresWriter(ctx context.Context, dsn string, o *WriterOptions) (WriteConnection, error) {
	p, err := connectPostgres(ctx, dsn, o.Timeout)
	if err != nil {
		return nil, err
	}
	return &postgresWriter{postgresConn: p, statement: o.Statement.Numbered("$")}, nil
}

type postgresWriter struct {
	*postgresConn

	statement string
}

// exec sends all values as text, of which the server makes what the statement wants.
func (w *postgresWriter) exec(ctx context.Context, values []any) error {
	texts := make([][]byte, len(values))
	for i, value := range values {
		texts[i] = []byte(strings.ReplaceAll(fmt.Sprint(value), "\x00", "")) // which text in PostgreSQL cannot have
	}
	batch := &pgconn.Batch{} // one request, one transaction
	batch.ExecParams("SELECT set_config('statement_timeout', $1, false)",
		[][]byte{[]byte(statementTimeout(ctx))}, nil, nil, nil)
	batch.ExecParams(w.statement, texts, nil, nil, nil)
	err := w.conn.PgConn().ExecBatch(ctx, batch).Close()
	if answer := refused(err); answer != nil && !endsConnection(answer) {
		return &RefusedError{w.explain(err)}
	}
	return w.explain(err)
}

// statementTimeout is how long the server may work, in milliseconds: a bit less than until the deadline, so that it
// answers.
func statementTimeout(ctx context.Context) string {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	return strconv.FormatInt(max(1, (left-min(left/10, 200*time.Millisecond)).Milliseconds()), 10)
}

// endsConnection reports whether an answer is about the server and not about the statement.
func endsConnection(answer *pgconn.PgError) bool {
	return strings.HasPrefix(answer.Code, "57P") || strings.HasPrefix(answer.Code, "53") || answer.Severity == "FATAL"
}

// SQLiteWriter writes to a file; its DSN is the path.
func SQLiteWriter(ctx context.Context, path string, o *WriterOptions) (WriteConnection, error) {
	db, err := OpenSQLite(ctx, path, "mode=rw")
	if err != nil {
		return nil, err
	}
	return &sqliteWriter{db: db, statement: o.Statement.Numbered("?")}, nil
}

type sqliteWriter struct {
	db        *sql.DB
	statement string
}

func (w *sqliteWriter) close() { _ = w.db.Close() }

func (w *sqliteWriter) exec(ctx context.Context, values []any) error {
	_, err := w.db.ExecContext(ctx, w.statement, values...)
	var answer *modernc.Error
	if errors.As(err, &answer) {
		switch answer.Code() & 0xff {
		case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH,
			sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE:
			return &RefusedError{explainSQLite(err)}
		}
	}
	return explainSQLite(err)
}
