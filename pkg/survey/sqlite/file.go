// Package sqlite keeps what surveys have found in a SQLite file: a new one takes its place when it is complete, and is
// updated there.
package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/corollary-dev/corollary/pkg/source"
)

// mark is SQLite's application_id of exports, which other files do not have.
const mark = 0x434f524c

// tableSchema makes the tables of an export.
const tableSchema = `
CREATE TABLE upstreams (operator TEXT NOT NULL, api_version TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL,
	name TEXT NOT NULL, uid TEXT NOT NULL, created TEXT, labels JSON, object JSON,
	PRIMARY KEY (operator, namespace, name)) WITHOUT ROWID;
CREATE TABLE downstreams (operator TEXT NOT NULL, upstream_namespace TEXT NOT NULL, upstream_name TEXT NOT NULL,
	downstream TEXT NOT NULL, api_version TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
	uid TEXT, created TEXT,
	state TEXT NOT NULL, reason TEXT NOT NULL);
CREATE INDEX downstreams_of ON downstreams (operator, upstream_namespace, upstream_name);
CREATE TABLE conditions (operator TEXT NOT NULL, upstream_namespace TEXT NOT NULL, upstream_name TEXT NOT NULL,
	type TEXT NOT NULL, status TEXT NOT NULL, reason TEXT, message TEXT, changed TEXT);
CREATE INDEX conditions_of ON conditions (operator, upstream_namespace, upstream_name);
CREATE TABLE exports (operator TEXT PRIMARY KEY, written TEXT NOT NULL);
`

// tables are those of tableSchema.
var tables = []string{"upstreams", "downstreams", "conditions", "exports"}

// File is an export: a new file beside its place until Publish, and the file in its place then.
type File struct {
	place string
	temp  string // the new file
	db    *sql.DB
	note  func(format string, args ...any)

	mu sync.Mutex // held from begin to end
	tx *sql.Tx
	// updating is held by one update; waited: it was noted that another process has locked the file.
	updating sync.Mutex
	waited   bool
	// inserting is for visits that come at the same time.
	inserting sync.Mutex
}

// Check refuses to replace a file that is not an export. It reports whether there is one.
func Check(path string) (exists bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular() || !isExport(path):
		return false, fmt.Errorf("%s exists and is not an export: name another file, or remove it", path)
	}
	return true, nil
}

// isExport looks at the header alone: SQLite opens a file that a killed process was writing only to recover it.
func isExport(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	header := make([]byte, 100) // where the application_id is at 68 (sqlite.org/fileformat.html)
	if _, err := io.ReadFull(f, header); err != nil {
		return false
	}
	return bytes.HasPrefix(header, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(header[68:]) == mark
}

// New begins an export. Of a symbolic link, the file that it names is replaced, or created. note reports what it waits
// for.
func New(ctx context.Context, place string, note func(format string, args ...any)) (*File, error) {
	place, err := followLinks(place)
	if err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(filepath.Dir(place), "."+filepath.Base(place)+".*")
	if err != nil {
		return nil, err
	}
	e := &File{place: place, temp: temp.Name(), note: note}
	if err := temp.Close(); err != nil {
		return nil, e.failed(err)
	}
	// The file is removed after any error, so that it needs no journal.
	e.db, err = source.OpenSQLite(ctx, e.temp, "mode=rw&_pragma=synchronous(OFF)&_pragma=journal_mode(MEMORY)")
	if err != nil {
		return nil, e.failed(err)
	}
	marked := fmt.Sprintf("PRAGMA application_id = %d;", mark)
	if _, err = e.db.ExecContext(ctx, marked+tableSchema); err == nil {
		err = e.begin(ctx)
	}
	if err != nil {
		return nil, e.failed(err)
	}
	return e, nil
}

// maxLinks is how many symbolic links in a row are followed, as in Linux.
const maxLinks = 40

// followLinks returns the path that symbolic links lead to, which may not exist.
func followLinks(path string) (string, error) {
	for at, n := path, 0; n <= maxLinks; n++ {
		target, err := os.Readlink(at)
		if err != nil { // it is no link, or does not exist
			return at, nil //nolint:nilerr // opening it tells anything else
		}
		if !filepath.IsAbs(target) {
			dir, _ := filepath.Split(at) // without cleaning: what ".." means depends on links, too
			target = dir + target
		}
		at = target
	}
	return "", fmt.Errorf("%s is a symbolic link that leads to no file: too many links", path)
}

// failed removes an export that could not be begun.
func (e *File) failed(err error) error {
	e.Discard()
	return e.writing(err)
}

func (e *File) writing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing %s: %w", e.place, err)
}

// Discard ends the export, and removes the file if it was not published.
func (e *File) Discard() {
	if e.tx != nil {
		_ = e.end(context.Canceled)
	}
	if e.db != nil {
		_ = e.db.Close()
	}
	_ = os.Remove(e.temp)
	if exists, err := Check(e.place); exists && err == nil {
		e.leaveOneFile()
	}
}

// leaveOneFile leaves no file beside the export, unless another process has it open: the last one to close it does that
// then.
func (e *File) leaveOneFile() {
	ctx := context.Background()
	db, err := source.OpenSQLite(ctx, e.place, "mode=rw")
	if err != nil {
		return
	}
	defer func() { _ = db.Close() }()
	// a later export does it otherwise
	_, _ = db.ExecContext(ctx, "PRAGMA busy_timeout = 100; PRAGMA journal_mode = DELETE")
}

func (e *File) begin(ctx context.Context) (err error) {
	e.mu.Lock()
	if e.tx, err = e.db.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		e.mu.Unlock()
		return e.writing(err)
	}
	return nil
}

// end commits what was written since begin, or takes it back after an error.
func (e *File) end(err error) error {
	defer e.mu.Unlock()
	tx := e.tx
	e.tx = nil
	if err == nil {
		err = e.writing(tx.Commit())
	}
	if err != nil {
		_ = tx.Rollback() // which does nothing after a commit
	}
	return err
}

// busyRetry is the time between two attempts to write a file that is locked.
const busyRetry = time.Second

// whileBusy repeats a write while another process has locked the file, until ctx is done.
func (e *File) whileBusy(ctx context.Context, write func() error) error {
	for {
		err := write()
		if !source.IsBusy(err) {
			e.waited = e.waited && err != nil
			return err
		}
		if !e.waited {
			e.note("%s is locked by another process, a reader with an open transaction for example: waiting", e.place)
			e.waited = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyRetry):
		}
	}
}

// Publish puts the file into its place, or its content into the export that is there, and opens that for updates.
func (e *File) Publish(ctx context.Context) error {
	if err := e.end(ctx.Err()); err != nil {
		return err
	}
	err := e.db.Close()
	e.db = nil
	if err != nil {
		return e.writing(err)
	}
	return e.whileBusy(ctx, func() error {
		switch exists, err := Check(e.place); {
		case err != nil:
			return err
		case exists:
			return e.writing(e.replaceContent(ctx))
		}
		return e.move()
	})
}

// move puts the new file into its place. What is left of another file would be taken for its journal.
func (e *File) move() error {
	if err := errors.Join(syncFile(e.temp), os.Chmod(e.temp, modeOf(e.place))); err != nil {
		return err
	}
	for _, suffix := range []string{"-journal", "-wal", "-shm"} {
		if err := os.Remove(e.place + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Rename(e.temp, e.place)
}

// replaceContent replaces the content of an export in one transaction: SQLite recovers what a killed process has left,
// and those who have the file open see the new content next time.
func (e *File) replaceContent(ctx context.Context) error {
	db, err := source.OpenSQLite(ctx, e.place, "mode=rw")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(ctx) // the only one that has the new file, too
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // which takes back what was not committed
	ctx = context.WithoutCancel(ctx)
	if _, err := conn.ExecContext(ctx, "ATTACH ? AS fresh", e.temp); err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("BEGIN IMMEDIATE;\n")
	for _, table := range tables {
		fmt.Fprintf(&script, "DROP TABLE IF EXISTS main.%s;\n", table)
	}
	script.WriteString(tableSchema)
	for _, table := range tables {
		fmt.Fprintf(&script, "INSERT INTO main.%[1]s SELECT * FROM fresh.%[1]s;\n", table)
	}
	script.WriteString("COMMIT;")
	_, err = conn.ExecContext(ctx, script.String())
	return err
}

// modeOf is the mode of a file, which may have been changed, or that of a new one.
func modeOf(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o600
}

// Follow opens the export in its place for updates. In WAL mode they and those who read do not wait for each other.
func (e *File) Follow(ctx context.Context) error {
	return e.whileBusy(ctx, func() (err error) {
		e.db, err = source.OpenSQLite(ctx, e.place, "mode=rw&_txlock=immediate&_pragma=journal_mode(WAL)")
		return e.writing(err)
	})
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
