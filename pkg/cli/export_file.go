package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// exportFile is an export: a new file beside its place until publish, and the file in its place then.
type exportFile struct {
	place, path string
	db          *sql.DB

	mu sync.Mutex // held from begin to end
	tx *sql.Tx
	// inserting is for visits that come at the same time.
	inserting sync.Mutex
}

// checkExport refuses to replace a file that is not an export.
func checkExport(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info.Mode().IsRegular() && info.Size() == 0:
		return nil
	case err != nil:
		return err
	case !isExport(ctx, path):
		return fmt.Errorf("%s exists and is not an export: name another file, or remove it", path)
	}
	return nil
}

func isExport(ctx context.Context, path string) bool {
	db, err := source.OpenSQLite(ctx, path, "mode=ro")
	if err != nil {
		return false
	}
	defer func() { _ = db.Close() }() // it was only read
	var mark int
	err = db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&mark)
	return err == nil && mark == exportMark
}

// newExportFile begins an export. Of a symbolic link, the file that it names is replaced, or created.
func newExportFile(ctx context.Context, place string) (*exportFile, error) {
	place, err := followLinks(place)
	if err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(filepath.Dir(place), "."+filepath.Base(place)+".*")
	if err != nil {
		return nil, err
	}
	e := &exportFile{place: place, path: temp.Name()}
	if err := temp.Close(); err != nil {
		return nil, e.failed(err)
	}
	if e.db, err = source.OpenSQLite(ctx, e.path, "mode=rw"); err != nil {
		return nil, e.failed(err)
	}
	marked := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA synchronous = OFF;", exportMark)
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
	return fmt.Errorf("writing %s: %w", e.place, err)
}

// discard closes the file, and removes it if it was not published.
func (e *exportFile) discard() {
	if e.tx != nil {
		_ = e.end(context.Canceled)
	}
	if e.db != nil {
		_ = e.db.Close()
	}
	if e.path != e.place {
		_ = os.Remove(e.path)
	}
}

func (e *exportFile) begin(ctx context.Context) (err error) {
	e.mu.Lock()
	if e.tx, err = e.db.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		e.mu.Unlock()
		return fmt.Errorf("writing %s: %w", e.place, err)
	}
	return nil
}

// end commits what was written since begin, or takes it back after an error.
func (e *exportFile) end(err error) error {
	defer e.mu.Unlock()
	tx := e.tx
	e.tx = nil
	if err != nil {
		_ = tx.Rollback()
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("writing %s: %w", e.place, err)
	}
	return nil
}

// publish puts the file into its place, and opens it there for updates.
func (e *exportFile) publish(ctx context.Context) error {
	if err := e.end(ctx.Err()); err != nil {
		return err
	}
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", e.place, err)
	}
	e.db = nil
	if err := errors.Join(syncFile(e.path), os.Chmod(e.path, modeOf(e.place))); err != nil {
		return err
	}
	if err := os.Rename(e.path, e.place); err != nil {
		return err
	}
	e.path = e.place
	var err error
	e.db, err = source.OpenSQLite(ctx, e.place, "mode=rw")
	return err
}

// modeOf is the mode of a file, which may have been changed, or that of a new one.
func modeOf(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o600
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
		return fmt.Errorf("writing %s: %w", e.place, err)
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

// exportedContent is an upstream's labels, and the rest of it without metadata and status, both as JSON; nil where its values are not shown.
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
