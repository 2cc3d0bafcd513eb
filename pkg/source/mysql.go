package source

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MySQL reads a MySQL or MariaDB database; its DSN is as the driver has it: USER:PASSWORD@tcp(HOST:PORT)/DATABASE.
func MySQL(ctx context.Context, dsn string, o *Options) (Connection, error) {
	m, err := connectMySQL(ctx, dsn, o.Timeout)
	if err != nil {
		return nil, err
	}
	// Some statements end a transaction: the next one is for reading only, too.
	if _, err := m.conn.ExecContext(ctx, "SET SESSION TRANSACTION READ ONLY"); err != nil {
		m.close()
		return nil, m.explain(err)
	}
	return m, nil
}

func connectMySQL(ctx context.Context, dsn string, timeout time.Duration) (*mysqlConn, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err == nil {
		err = cfg.Apply(mysql.Charset("utf8mb4", ""))
	}
	if err != nil { // which may quote it
		return nil, errors.New("the connection string is not one: write USER:PASSWORD@tcp(HOST:PORT)/DATABASE")
	}
	// Values are bound, statements come one at a time, no server gets files, and nothing is printed but by us.
	cfg.InterpolateParams, cfg.MultiStatements, cfg.AllowAllFiles, cfg.ParseTime, cfg.Logger = false, false,
		false, false, &mysql.NopLogger{}
	cfg.ReadTimeout, cfg.WriteTimeout = timeout+time.Second, timeout+time.Second // where no context ends it
	m := &mysqlConn{secrets: []string{dsn, cfg.Passwd, cfg.User}}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, m.explain(err)
	}
	m.db = sql.OpenDB(connector)
	if m.conn, err = m.db.Conn(ctx); err == nil {
		err = m.prepare(ctx, timeout)
	}
	if err != nil {
		m.close()
		return nil, m.explain(err)
	}
	return m, nil
}

type mysqlConn struct {
	notifies

	db   *sql.DB
	conn *sql.Conn
	tx   *sql.Tx
	// secrets are parts of the DSN that no error may contain.
	secrets []string
}

// prepare sets how long the server works for a statement, and waits for locks.
func (m *mysqlConn) prepare(ctx context.Context, timeout time.Duration) error {
	var version string
	if err := m.conn.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	limit := "max_execution_time = " + strconv.FormatInt(timeout.Milliseconds(), 10)
	if strings.Contains(version, "MariaDB") {
		limit = "max_statement_time = " + strconv.FormatFloat(timeout.Seconds(), 'f', 3, 64) +
			", idle_transaction_timeout = " + strconv.Itoa(max(1, int(timeout.Seconds()))) // of a client that is frozen
	}
	seconds := strconv.Itoa(max(1, int(timeout.Seconds())))
	_, err := m.conn.ExecContext(ctx,
		"SET SESSION time_zone = '+00:00', lock_wait_timeout = "+seconds+", innodb_lock_wait_timeout = "+seconds+
			", "+limit)
	return err
}

func (m *mysqlConn) close() {
	if m.tx != nil {
		_ = m.tx.Rollback() // or the connection would wait for it
	}
	if m.conn != nil {
		_ = m.conn.Close() // it is of no further use, whatever the error
	}
	_ = m.db.Close()
}

func (m *mysqlConn) begin(ctx context.Context) (err error) {
	m.tx, err = m.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	return m.explain(err)
}

func (m *mysqlConn) end(context.Context) error { return m.explain(m.tx.Rollback()) } // nothing was written

func (m *mysqlConn) dialect() dialect { return dialect{"?", "`", ""} } // NULL comes first

// position says which server it is, and whether it is a replica. How far a replica has come is not known.
func (m *mysqlConn) position(ctx context.Context) (*position, error) {
	var at position
	err := m.tx.QueryRowContext(ctx, "SELECT CONCAT(@@hostname, ':', @@port, ' ', @@server_id), @@read_only <> 0").
		Scan(&at.system,
			&at.standby)
	return &at, m.explain(err)
}

func (m *mysqlConn) query(ctx context.Context, statement string, values ...any) (rows, error) {
	result, err := m.tx.QueryContext(ctx, statement, values...)
	if err != nil {
		return nil, m.explain(err)
	}
	r := &mysqlRows{scannedRows: scannedRows{Rows: result}, conn: m}
	if err := r.describe(); err != nil {
		return nil, m.explain(err)
	}
	return r, nil
}

type mysqlRows struct {
	scannedRows

	conn *mysqlConn
}

func (r *mysqlRows) err() error { return r.conn.explain(r.scannedRows.err()) }

// bound is the value itself, of which all but numbers is text.
func (r *mysqlRows) bound(column int) (any, bool) {
	if data, isBytes := r.values[column].([]byte); isBytes {
		return string(data), true
	}
	return r.values[column], true
}

// value goes by the type of the column: what is neither a number nor bytes is its text.
func (r *mysqlRows) value(column int) (any, error) {
	kind := r.types[column].DatabaseTypeName()
	switch v := r.values[column].(type) {
	case uint64:
		return unsigned(v), nil
	case float32: // of which float64 would show more digits than there are
		f, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
		return f, err
	case []byte:
		return mysqlValue(kind, v)
	}
	return plain(r.values[column])
}

func mysqlValue(kind string, data []byte) (any, error) {
	switch kind {
	case "JSON":
		return fromJSON(string(data))
	case "BIT":
		return unsigned(binary.BigEndian.Uint64(append(make([]byte, max(0, 8-len(data))), data...))), nil
	case "DATETIME", "TIMESTAMP":
		return asTime(string(data), "2006-01-02 15:04:05.999999999"), nil
	case "BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "GEOMETRY", "VECTOR":
		return plain(data)
	}
	return plain(string(data))
}

// unsigned is text if the number has more than 63 bits.
func unsigned(n uint64) any {
	if i := int64(n); i >= 0 {
		return i
	}
	return strconv.FormatUint(n, 10)
}

// account is how MySQL names a user and from where it comes.
var account = regexp.MustCompile(`'[^']*'@'[^']*'`)

// explain says what happened, without the address and the credentials that errors of the driver contain.
func (m *mysqlConn) explain(err error) error {
	var answer *mysql.MySQLError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		text := account.ReplaceAllString(sayMySQL(answer), "'…'")
		for _, secret := range m.secrets {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "…")
			}
		}
		return &mysqlAnswerError{text, answer}
	}
	return unreachable(err)
}

// mysqlAnswerError is a server's answer, without what may be secret.
type mysqlAnswerError struct {
	text  string
	cause *mysql.MySQLError
}

func (e *mysqlAnswerError) Error() string { return e.text }

func (e *mysqlAnswerError) Unwrap() error { return e.cause }

// unreachable says why a server did not answer, without its address.
func unreachable(err error) error {
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errors.New("no answer in time")
	case errors.As(err, &name):
		return errors.New("the name of the host is not known, or cannot be looked up")
	case errors.As(err, &network):
		return fmt.Errorf("the server cannot be reached: %w", network.Err)
	}
	return errors.New("the connection was lost, or could not be made")
}

// MySQLWriter writes to a MySQL or MariaDB database.
func MySQLWriter(ctx context.Context, dsn string, o *WriterOptions) (WriteConnection, error) {
	m, err := connectMySQL(ctx, dsn, o.Timeout)
	if err != nil {
		return nil, err
	}
	w := &mysqlWriter{mysqlConn: m}
	w.statement, w.order = o.Statement.Marked("?")
	return w, nil
}

type mysqlWriter struct {
	*mysqlConn

	statement string
	order     []int // of the values
}

// exec commits only once the statement is done and ctx is not: a server continues with a statement that it waits with
// for a lock, though nobody waits for it any more.
func (w *mysqlWriter) exec(ctx context.Context, values []any) error {
	var args []any
	for _, i := range w.order {
		args = append(args, values[i])
	}
	tx, err := w.conn.BeginTx(ctx, nil)
	if err != nil {
		return w.explain(err)
	}
	if _, err = tx.ExecContext(ctx, w.statement, args...); err == nil {
		return w.explain(tx.Commit())
	}
	err = w.explain(err)
	var answer *mysql.MySQLError
	if tx.Rollback() == nil && errors.As(err, &answer) && !slices.Contains(mysqlLost, answer.Number) &&
		!errors.Is(err, driver.ErrBadConn) {
		return &RefusedError{err}
	}
	return err
}

// mysqlLost are the answers that are about the server and not about a statement: it has no room, stops, or ends the
// connection.
var mysqlLost = []uint16{1037, 1038, 1040, 1041, 1053, 1077, 1079, 1152, 1184, 1203, 1226, 1927, 3169, 4031}
