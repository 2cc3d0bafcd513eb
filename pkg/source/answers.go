package source

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file keeps the values of rows out of errors: databases quote the value that they complain about. What they say
// of the text of the statement, which is in the config, stays.

var (
	// quoted is from the first quotation mark to the last one, whatever the language: what is quoted may have some in it.
	quoted = regexp.MustCompile("(?s)[\"'`«»„“”‚‘’‹›「」『』].*[\"'`«»„“”‚‘’‹›「」『』]")
	number = regexp.MustCompile(`[^\s(]*[0-9][^\s)]*`)
)

// notQuoted replaces a text that may have a value anywhere.
const notQuoted = "the text of the error is not shown, because it may quote a row"

// dataException is the class of errors about a value.
const dataException = "22"

// canceled matches what a server says of a statement that it has ended.
var canceled = regexp.MustCompile(`^canceling statement due to (statement timeout|lock timeout|user request|conflict with recovery)$`)

// sayPostgres is what a server answered, without values of rows. An answer with a position is about the text of the
// statement.
func sayPostgres(answer *pgconn.PgError) string {
	class := answer.Code[:min(2, len(answer.Code))]
	text := answer.Message
	switch {
	case canceled.MatchString(text): // whatever it was doing
	case answer.Where != "", !isStandard(class): // a function may have made the text
		text = notQuoted
		if class == dataException {
			text = "a value is not valid for its type or for a function; " + notQuoted
		}
	case answer.Position > 0 || class == "28" || class == "3D": // 28 and 3D are about the connection string
	case class == dataException:
		text = number.ReplaceAllString(quoted.ReplaceAllString(text, "…"), "…")
	default:
		text = quoted.ReplaceAllString(text, "…")
	}
	text += " (SQLSTATE " + answer.Code
	if answer.ConstraintName != "" && answer.Where == "" {
		text += ", constraint " + answer.ConstraintName
	}
	if answer.Position > 0 {
		text += fmt.Sprintf(", at character %d", answer.Position)
	}
	return text + ")"
}

// isStandard reports whether the texts of a class of errors are the server's own.
func isStandard(class string) bool {
	return class != "" && !slices.Contains([]string{"P0", "38", "39", "F0", "HV"}, class) &&
		(class[0] <= '4' || class[0] == '5' || class == "XX")
}

// sayMySQL is what a server answered, without values of rows.
func sayMySQL(answer *mysql.MySQLError) string {
	text := answer.Message
	switch string(answer.SQLState[:2]) {
	case "42", "28": // about the text of the statement, or the connection string
	case "45": // a trigger or a function has made the text
		text = notQuoted
	default:
		text = quoted.ReplaceAllString(text, "…")
	}
	return fmt.Sprintf("%s (error %d)", text, answer.Number)
}

// sqliteError is an error of SQLite without values of rows.
type sqliteError struct {
	text  string
	cause error
}

func (e *sqliteError) Error() string { return e.text }

func (e *sqliteError) Unwrap() error { return e.cause }

// aboutStatement matches what SQLite says of the text of a statement.
var aboutStatement = regexp.MustCompile(`(?s)^SQL logic error: (near ".*": syntax error|unrecognized token: ".*") \(1\)$`)

// explainSQLite returns an error without values of rows.
func explainSQLite(err error) error {
	var answer *modernc.Error
	if !errors.As(err, &answer) || aboutStatement.MatchString(err.Error()) {
		return err
	}
	if answer.Code() == sqlite3.SQLITE_CONSTRAINT_TRIGGER {
		return &sqliteError{"a trigger refused it; " + notQuoted, err}
	}
	return &sqliteError{quoted.ReplaceAllString(err.Error(), "…"), err}
}
