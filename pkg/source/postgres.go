package source

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// Postgres reads a PostgreSQL database; its DSN is a URL, or pairs of keyword and value.
func Postgres(ctx context.Context, dsn string, o *Options) (Connection, error) {
	p, err := connectPostgres(ctx, dsn, o.Timeout)
	if err != nil {
		return nil, err
	}
	p.listens = o.Listen != ""
	if _, err := p.position(ctx); refused(err) != nil {
		p.hasNoPosition = true // a database that is compatible, without a log of this kind
	} else if err != nil {
		p.close()
		return nil, err
	}
	if p.listens {
		if _, err := p.conn.Exec(ctx, "LISTEN "+pgx.Identifier{o.Listen}.Sanitize()); err != nil {
			p.close()
			return nil, p.explain(err)
		}
	}
	return p, nil
}

func connectPostgres(ctx context.Context, dsn string, timeout time.Duration) (*postgresConn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil { // which quotes it
		return nil, errors.New("the connection string is not one: write postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	cfg.RuntimeParams["timezone"], cfg.RuntimeParams["datestyle"] = "UTC", "ISO"
	cfg.RuntimeParams["bytea_output"], cfg.RuntimeParams["extra_float_digits"] = "hex", "3"
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(&boundedMessages{r: r}, w)
	}
	p := &postgresConn{timeout: timeout, secrets: []string{dsn, cfg.Password, cfg.User}}
	if p.conn, err = pgx.ConnectConfig(ctx, cfg); err != nil {
		return nil, p.explain(err)
	}
	switch p.conn.PgConn().ParameterStatus("client_encoding") {
	case "UTF8", "SQL_ASCII": // of which the server refuses to send what is not UTF-8
	default:
		if _, err := p.conn.Exec(ctx, "SET client_encoding = 'UTF8'"); err != nil {
			p.close()
			return nil, p.explain(err)
		}
	}
	return p, nil
}

type postgresConn struct {
	conn    *pgx.Conn
	timeout time.Duration
	listens bool
	// hasNoPosition: the server does not report its position.
	hasNoPosition bool
	// secrets are parts of the DSN that no error may contain.
	secrets []string
}

func (p *postgresConn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = p.conn.Close(ctx) // it is of no further use, whatever the error
}

func (p *postgresConn) begin(ctx context.Context) error {
	if _, err := p.conn.Exec(ctx, "BEGIN READ ONLY"); err != nil {
		return p.explain(err)
	}
	_, err := p.conn.Exec(ctx, "SET LOCAL statement_timeout = "+strconv.FormatInt(p.timeout.Milliseconds(), 10))
	p.drain(ctx)
	return p.explain(err)
}

// drain drops the notifications that have come: they are about what the queries that follow see. In a transaction no
// more come.
func (p *postgresConn) drain(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // those that have not come are not waited for
	for {
		if n, err := p.conn.WaitForNotification(ctx); n == nil || err != nil {
			return
		}
	}
}

func (p *postgresConn) end(ctx context.Context) error {
	_, err := p.conn.Exec(ctx, "ROLLBACK") // nothing was written
	return p.explain(err)
}

// positionQuery asks for the position. Of a standby, the log ends with what it has replayed.
const positionQuery = `SELECT s.system_identifier::text, pg_is_in_recovery(),
CASE WHEN pg_is_in_recovery() THEN c.timeline_id
     ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int END,
((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
       ELSE pg_current_wal_insert_lsn() END) - '0/0'::pg_lsn)::text
FROM pg_control_system() s, pg_control_checkpoint() c`

func (p *postgresConn) position(ctx context.Context) (*position, error) {
	if p.hasNoPosition {
		return nil, nil
	}
	var at position
	var log string
	if err := p.conn.QueryRow(ctx, positionQuery).Scan(&at.system, &at.standby, &at.timeline, &log); err != nil {
		return nil, p.explain(err)
	}
	var err error
	at.log, err = strconv.ParseUint(log, 10, 64)
	return &at, err
}

func (p *postgresConn) dialect() dialect { return dialect{"$1", `"`, " NULLS FIRST"} }

func (p *postgresConn) wait(ctx context.Context) error {
	if !p.listens {
		<-ctx.Done()
		return nil
	}
	_, err := p.conn.WaitForNotification(ctx)
	if ctx.Err() != nil && !p.conn.IsClosed() { // nothing came in time
		return nil
	}
	return err
}

// query asks for all values as text, which each type has.
func (p *postgresConn) query(ctx context.Context, statement string, values ...any) (rows, error) {
	args := []any{pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode}}
	if len(values) > 0 {
		args[0] = pgx.QueryExecModeDescribeExec // the server says of which types the parameters are
	}
	for _, value := range values {
		args = append(args, fmt.Sprint(value))
	}
	result, err := p.conn.Query(ctx, statement, args...)
	if err != nil {
		return nil, p.explain(err)
	}
	r := &postgresRows{Rows: result, conn: p}
	for _, f := range result.FieldDescriptions() {
		r.names = append(r.names, f.Name)
	}
	if len(r.names) == 0 { // an error that came before the columns
		result.Close()
		return nil, p.explain(result.Err())
	}
	return r, nil
}

type postgresRows struct {
	pgx.Rows

	conn  *postgresConn
	names []string
}

func (r *postgresRows) columns() []string { return r.names }

func (r *postgresRows) next() bool { return r.Next() }

func (r *postgresRows) err() error { return r.conn.explain(r.Err()) }

// bound is the text of any type: the server understands it.
func (r *postgresRows) bound(column int) (any, bool) {
	raw := r.RawValues()[column]
	if raw == nil {
		return nil, true
	}
	return string(raw), true
}

func (r *postgresRows) close() { r.Close() }

func (r *postgresRows) value(column int) (any, error) {
	raw := r.RawValues()[column]
	if raw == nil {
		return nil, nil
	}
	return r.conn.value(r.FieldDescriptions()[column].DataTypeOID, string(raw), 0)
}

// value converts the text of a value. What has no type in JSON stays text, such as numeric, whose digits all count.
func (p *postgresConn) value(oid uint32, text string, depth int) (any, error) {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		return strconv.ParseInt(text, 10, 64)
	case pgtype.Float4OID, pgtype.Float8OID:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		return plain(f)
	case pgtype.BoolOID:
		return text == "t", nil
	case pgtype.JSONOID, pgtype.JSONBOID:
		return fromJSON(text)
	case pgtype.ByteaOID:
		data, err := hex.DecodeString(strings.TrimPrefix(text, `\x`))
		if err != nil {
			return nil, err
		}
		return plain(data)
	case pgtype.TimestamptzOID:
		return asTime(text, "2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07:00"), nil
	case pgtype.TimestampOID:
		return asTime(text, "2006-01-02 15:04:05.999999999"), nil
	}
	if t, ok := p.conn.TypeMap().TypeForOID(oid); ok && depth == 0 {
		if array, ok := t.Codec.(*pgtype.ArrayCodec); ok {
			return p.array(t, array.ElementType.OID, text)
		}
	}
	return plain(text)
}

// asTime gives a time the form of RFC 3339. Infinity, and years that the form has no room for, stay as they are.
func asTime(text string, layouts ...string) string {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Format(time.RFC3339Nano)
		}
	}
	return text
}

// array gives an array of any number of dimensions as lists. A NULL in it is null.
func (p *postgresConn) array(t *pgtype.Type, element uint32, text string) (any, error) {
	var a pgtype.Array[*string]
	if err := p.conn.TypeMap().Scan(pgtype.TextArrayOID, pgtype.TextFormatCode, []byte(text), &a); err != nil {
		return nil, fmt.Errorf("the %s cannot be read", t.Name)
	}
	items := make([]any, len(a.Elements))
	for i, item := range a.Elements {
		if item == nil {
			continue
		}
		var err error
		if items[i], err = p.value(element, *item, 1); err != nil {
			return nil, err
		}
	}
	for d := len(a.Dims) - 1; d > 0; d-- {
		var outer []any
		for chunk := range slices.Chunk(items, int(a.Dims[d].Length)) {
			outer = append(outer, chunk)
		}
		items = outer
	}
	return items, nil
}

// refused is what a server answered, if an error is that.
func refused(err error) *pgconn.PgError {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer
	}
	return nil
}

// answerError is a server's answer, without what may be secret.
type answerError struct {
	text  string
	cause *pgconn.PgError
}

func (e *answerError) Error() string { return e.text }

func (e *answerError) Unwrap() error { return e.cause }

// explain says what happened, without the address and the credentials that errors of the library contain.
func (p *postgresConn) explain(err error) error {
	answer := refused(err)
	switch {
	case err == nil:
		return nil
	case answer != nil:
		text := sayPostgres(answer)
		for _, secret := range p.secrets {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "…")
			}
		}
		return &answerError{text, answer}
	case errors.Is(err, errTooLarge):
		return errTooLarge
	}
	return unreachable(err)
}
