// Package query has the types of queries whose rows are upstreams or inputs.
package query

import "github.com/corollary-dev/corollary/pkg/config/common"

// RowKind is the kind of upstreams that are rows of a query, in APIVersion. No API server has it: it is the kind that
// case files, owner marks and commands name.
const RowKind = "Row"

// Source is a database whose rows are the upstreams.
type Source struct {
	Rows

	// Deletes limits what one result may delete without confirmation. A result without rows always needs one, and a failed
	// query deletes nothing.
	Deletes Deletes `json:"deletes,omitempty"`
	// WriteBack is an UPDATE or INSERT that records the state of a row, executed when that changes. Its parameters are
	// $state, $ready, $reason, $message, and the column that key names, such as $id.
	WriteBack string `json:"writeBack,omitempty"`
	// WriteDSNFrom says where the connection string of writeBack is, for PostgreSQL and MySQL. Default: that of the query.
	WriteDSNFrom *DSNFrom `json:"writeDSNFrom,omitempty"`
}

// Rows are the rows of a query.
type Rows struct {
	// Postgres is a PostgreSQL database.
	Postgres *DatabaseServer `json:"postgres,omitempty"`
	// MySQL is a MySQL or MariaDB database.
	MySQL *DatabaseServer `json:"mysql,omitempty"`
	// SQLite is a database in a file.
	SQLite *SQLite `json:"sqlite,omitempty"`
	// Query is the statement that returns the rows. Expressions read a column as .row.COLUMN.
	Query string `json:"query"`
	// Key is the column that identifies a row: unique, and never NULL. An object made from a row belongs to it as long as
	// the key and the name of the operator stay the same.
	Key string `json:"key"`
	// Changes says how changed rows are noticed.
	Changes Changes `json:"changes,omitempty"`
	// Timeout bounds one execution of a statement. Default: 30s.
	Timeout common.Duration `json:"timeout,omitempty"`
	// MaxRows is how many rows the query may return (default 10000); a result with more is refused as a whole.
	MaxRows *int `json:"maxRows,omitempty" min:"1" max:"1000000"`
}

// Server is the database that has a connection string, and its key; nil if there is none.
func (r *Rows) Server() (server *DatabaseServer, key string) {
	switch {
	case r.Postgres != nil:
		return r.Postgres, "postgres"
	case r.MySQL != nil:
		return r.MySQL, "mysql"
	}
	return nil, ""
}

// SQLite is a SQLite database.
type SQLite struct {
	// Path is the path of the file, relative to the config file. Queries open it for reading only.
	Path string `json:"path"`
}

// DatabaseServer is a database that is reached by a connection string.
type DatabaseServer struct {
	// DSNFrom says where the connection string is.
	DSNFrom DSNFrom `json:"dsnFrom"`
}

// DSNFrom is where a connection string is, such as postgres://USER:PASSWORD@HOST/DATABASE, or for MySQL
// USER:PASSWORD@tcp(HOST:PORT)/DATABASE. It is read again for each connection, and is part of no log, error or plan.
type DSNFrom struct {
	// Env is a variable of the environment of the process.
	Env string `json:"env,omitempty"`
	// File is a file with nothing else, relative to the config file.
	File string `json:"file,omitempty"`
	// Secret is a key of a Secret.
	Secret *SecretKey `json:"secret,omitempty"`
}

// SecretKey is a key of a Secret.
type SecretKey struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace" form:"dnsLabel"`
	// Name of the Secret.
	Name string `json:"name" form:"objectName"`
	// Key in its data.
	Key string `json:"key" form:"configMapKey"`
}

// Changes says how changed rows are noticed.
type Changes struct {
	// Listen is a channel of PostgreSQL: a NOTIFY on it executes the query at once.
	Listen string `json:"listen,omitempty"`
	// Poll is how often the query is executed, at least 1s. Default: 30s.
	Poll common.Duration `json:"poll,omitempty"`
	// Cursor is a column whose value grows with each change of a row, such as updated_at or a version: only rows are read
	// that may have changed.
	Cursor string `json:"cursor,omitempty"`
	// Overlap is how long a transaction may take between setting the cursor and its commit to be noticed at once. Default:
	// 1m.
	Overlap common.Duration `json:"overlap,omitempty"`
	// Full is how often all rows are read nevertheless, which finds deleted rows and what the cursor misses. Default: 10m.
	Full common.Duration `json:"full,omitempty"`
}

// Deletes limits how many downstreams one result may delete, because it lacks their rows, until that is confirmed as
// any change that guard holds.
type Deletes struct {
	// MaxPercent is the percentage of existing downstreams. Default: 10; 100: no limit.
	MaxPercent *int `json:"maxPercent,omitempty" min:"0" max:"100"`
	// Minimum is the number of downstreams that never need confirmation. Default: 5.
	Minimum *int `json:"minimum,omitempty" min:"0"`
}

// The parameters of writeBack beside the key.
const (
	RowState   = "state"
	RowReady   = "ready"
	RowReason  = "reason"
	RowMessage = "message"
)

// RowParameters are the parameters of a statement that writes back the state of a row.
var RowParameters = []string{RowState, RowReady, RowReason, RowMessage}
