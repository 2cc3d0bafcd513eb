package cli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/pipeline"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/source"
)

// exportMark is SQLite's application_id of exports, which other files do not have.
const exportMark = 0x434f524c

// exportSchema makes the tables of an export.
const exportSchema = `
CREATE TABLE upstreams (operator TEXT NOT NULL, api_version TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
	uid TEXT NOT NULL, created TEXT, labels JSON, object JSON, PRIMARY KEY (operator, namespace, name)) WITHOUT ROWID;
CREATE TABLE downstreams (operator TEXT NOT NULL, upstream_namespace TEXT NOT NULL, upstream_name TEXT NOT NULL, downstream TEXT NOT NULL,
	api_version TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT, created TEXT,
	state TEXT NOT NULL, reason TEXT NOT NULL);
CREATE INDEX downstreams_of ON downstreams (operator, upstream_namespace, upstream_name);
CREATE TABLE conditions (operator TEXT NOT NULL, upstream_namespace TEXT NOT NULL, upstream_name TEXT NOT NULL, type TEXT NOT NULL,
	status TEXT NOT NULL, reason TEXT, message TEXT, changed TEXT);
CREATE INDEX conditions_of ON conditions (operator, upstream_namespace, upstream_name);
CREATE TABLE exports (operator TEXT PRIMARY KEY, written TEXT NOT NULL);
`

// exportTables are those of exportSchema.
var exportTables = []string{"upstreams", "downstreams", "conditions", "exports"}

// exportFile is an export: a new file beside its place until publish, and the file in its place then.
type exportFile struct {
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

// checkExport refuses to replace a file that is not an export. It reports whether there is one.
func checkExport(path string) (exists bool, err error) {
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
	return bytes.HasPrefix(header, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(header[68:]) == exportMark
}

// newExportFile begins an export. Of a symbolic link, the file that it names is replaced, or created. note reports what it waits for.
func newExportFile(ctx context.Context, place string, note func(format string, args ...any)) (*exportFile, error) {
	place, err := followLinks(place)
	if err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(filepath.Dir(place), "."+filepath.Base(place)+".*")
	if err != nil {
		return nil, err
	}
	e := &exportFile{place: place, temp: temp.Name(), note: note}
	if err := temp.Close(); err != nil {
		return nil, e.failed(err)
	}
	// The file is removed after any error, so that it needs no journal.
	if e.db, err = source.OpenSQLite(ctx, e.temp, "mode=rw&_pragma=synchronous(OFF)&_pragma=journal_mode(MEMORY)"); err != nil {
		return nil, e.failed(err)
	}
	marked := fmt.Sprintf("PRAGMA application_id = %d;", exportMark)
	if _, err = e.db.ExecContext(ctx, marked+exportSchema); err == nil {
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
func (e *exportFile) failed(err error) error {
	e.discard()
	return e.writing(err)
}

func (e *exportFile) writing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing %s: %w", e.place, err)
}

// discard ends the export, and removes the file if it was not published.
func (e *exportFile) discard() {
	if e.tx != nil {
		_ = e.end(context.Canceled)
	}
	if e.db != nil {
		_ = e.db.Close()
	}
	_ = os.Remove(e.temp)
	if exists, err := checkExport(e.place); exists && err == nil {
		e.leaveOneFile()
	}
}

// leaveOneFile leaves no file beside the export, unless another process has it open: the last one to close it does that then.
func (e *exportFile) leaveOneFile() {
	ctx := context.Background()
	db, err := source.OpenSQLite(ctx, e.place, "mode=rw")
	if err != nil {
		return
	}
	defer func() { _ = db.Close() }()
	_, _ = db.ExecContext(ctx, "PRAGMA busy_timeout = 100; PRAGMA journal_mode = DELETE") // a later export does it otherwise
}

func (e *exportFile) begin(ctx context.Context) (err error) {
	e.mu.Lock()
	if e.tx, err = e.db.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		e.mu.Unlock()
		return e.writing(err)
	}
	return nil
}

// end commits what was written since begin, or takes it back after an error.
func (e *exportFile) end(err error) error {
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
func (e *exportFile) whileBusy(ctx context.Context, write func() error) error {
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

// publish puts the file into its place, or its content into the export that is there, and opens that for updates.
func (e *exportFile) publish(ctx context.Context) error {
	if err := e.end(ctx.Err()); err != nil {
		return err
	}
	err := e.db.Close()
	e.db = nil
	if err != nil {
		return e.writing(err)
	}
	return e.whileBusy(ctx, func() error {
		switch exists, err := checkExport(e.place); {
		case err != nil:
			return err
		case exists:
			return e.writing(e.replaceContent(ctx))
		}
		return e.move()
	})
}

// move puts the new file into its place. What is left of another file would be taken for its journal.
func (e *exportFile) move() error {
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

// replaceContent replaces the content of an export in one transaction: SQLite recovers what a killed process has left, and those
// who have the file open see the new content next time.
func (e *exportFile) replaceContent(ctx context.Context) error {
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
	for _, table := range exportTables {
		fmt.Fprintf(&script, "DROP TABLE IF EXISTS main.%s;\n", table)
	}
	script.WriteString(exportSchema)
	for _, table := range exportTables {
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

// follow opens the export in its place for updates. In WAL mode they and those who read do not wait for each other.
func (e *exportFile) follow(ctx context.Context) error {
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

func (e *exportFile) exec(ctx context.Context, statement string, values ...any) error {
	if _, err := e.tx.ExecContext(context.WithoutCancel(ctx), statement, values...); err != nil {
		return e.writing(err)
	}
	return nil
}

// remove removes what is said about an upstream.
func (e *exportFile) remove(ctx context.Context, f *reconcile.Finding) error {
	for _, statement := range []string{
		"DELETE FROM upstreams WHERE operator = ? AND namespace = ? AND name = ?",
		"DELETE FROM downstreams WHERE operator = ? AND upstream_namespace = ? AND upstream_name = ?",
		"DELETE FROM conditions WHERE operator = ? AND upstream_namespace = ? AND upstream_name = ?",
	} {
		if err := e.exec(ctx, statement, f.Operator, f.Ref.Namespace, f.Ref.Name); err != nil {
			return err
		}
	}
	return nil
}

// insert writes what was found about an upstream.
func (e *exportFile) insert(ctx context.Context, pl *pipeline.Pipeline, f *reconcile.Finding) error {
	e.inserting.Lock()
	defer e.inserting.Unlock()
	for _, r := range rowsOf(pl, f) {
		var created any
		if !r.created.IsZero() {
			created = r.created.UTC().Format(time.RFC3339)
		}
		api, kind := r.object.gvk.ToAPIVersionAndKind()
		if err := e.exec(ctx, "INSERT INTO downstreams VALUES (?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?)", f.Operator, f.Ref.Namespace,
			f.Ref.Name, r.downstream, api, kind, r.object.at.Namespace, r.object.at.Name, r.object.uid, created, r.state, r.reason); err != nil {
			return err
		}
	}
	if f.Upstream == nil || !f.Selected {
		return nil
	}
	return e.insertUpstream(ctx, pl, f)
}

func (e *exportFile) insertUpstream(ctx context.Context, pl *pipeline.Pipeline, f *reconcile.Finding) error {
	u := f.Upstream
	var created any
	if at := u.GetCreationTimestamp(); !at.IsZero() {
		created = at.UTC().Format(time.RFC3339)
	}
	labels, object, err := exportedContent(pl, u)
	if err != nil {
		return err
	}
	api, kind := pl.Upstream.GVK.ToAPIVersionAndKind()
	if err := e.exec(ctx, "INSERT INTO upstreams VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", f.Operator, api, kind, u.GetNamespace(), u.GetName(),
		string(u.GetUID()), created, labels, object); err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		text := func(key string) any {
			s, _ := c[key].(string)
			return s
		}
		if err := e.exec(ctx, "INSERT INTO conditions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", f.Operator, u.GetNamespace(), u.GetName(), text("type"),
			text("status"), text("reason"), text("message"), text("lastTransitionTime")); err != nil {
			return err
		}
	}
	return nil
}

// exportedContent is an upstream's labels, and the rest of it without metadata and status, both as JSON; nil where its values are not
// shown.
func exportedContent(pl *pipeline.Pipeline, u *unstructured.Unstructured) (labels, object any, err error) {
	if pl.UpstreamWords != nil {
		return nil, nil, nil
	}
	content := map[string]any{}
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[key] = value
		}
	}
	text, err := json.Marshal(u.GetLabels())
	if err != nil {
		return nil, nil, err
	}
	rest, err := json.Marshal(content)
	return string(text), string(rest), err
}

// written notes when what is said about an operator was written.
func (e *exportFile) written(ctx context.Context, pl *pipeline.Pipeline) error {
	return e.exec(ctx, "INSERT OR REPLACE INTO exports VALUES (?, ?)", pl.Name, time.Now().UTC().Format(time.RFC3339))
}
