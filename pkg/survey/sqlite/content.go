package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// All writes everything about one operator.
func (e *File) All(ctx context.Context, v *survey.Survey) error {
	err := v.Visit(ctx, v.Refs(), func(f *preview.Finding) error {
		return e.insert(ctx, v.Pipeline(), f)
	})
	if err != nil {
		return err
	}
	return e.written(ctx, v.Pipeline())
}

// Update replaces what is said about one upstream.
func (e *File) Update(ctx context.Context, pl *compile.Pipeline, f *preview.Finding) error {
	e.updating.Lock()
	defer e.updating.Unlock()
	return e.whileBusy(ctx, func() error {
		if !isExport(e.place) {
			return fmt.Errorf("%s was removed, or replaced by a file that is not an export", e.place)
		}
		if err := e.begin(ctx); err != nil {
			return err
		}
		err := e.remove(ctx, f)
		if err == nil {
			err = e.insert(ctx, pl, f)
		}
		if err == nil {
			err = e.written(ctx, pl)
		}
		return e.end(err)
	})
}

func (e *File) exec(ctx context.Context, statement string, values ...any) error {
	if _, err := e.tx.ExecContext(context.WithoutCancel(ctx), statement, values...); err != nil {
		return e.writing(err)
	}
	return nil
}

// remove removes what is said about an upstream.
func (e *File) remove(ctx context.Context, f *preview.Finding) error {
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
func (e *File) insert(ctx context.Context, pl *compile.Pipeline, f *preview.Finding) error {
	e.inserting.Lock()
	defer e.inserting.Unlock()
	for _, r := range findings.Rows(pl, f) {
		var created any
		if !r.Created.IsZero() {
			created = r.Created.UTC().Format(time.RFC3339)
		}
		api, kind := r.Object.Kind.ToAPIVersionAndKind()
		err := e.exec(ctx, "INSERT INTO downstreams VALUES (?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?)",
			f.Operator, f.Ref.Namespace,
			f.Ref.Name, r.Downstream, api, kind, r.Object.At.Namespace, r.Object.At.Name, r.Object.UID, created,
			r.State, r.Reason)
		if err != nil {
			return err
		}
	}
	if f.Upstream == nil || !f.Selected {
		return nil
	}
	return e.insertUpstream(ctx, pl, f)
}

func (e *File) insertUpstream(ctx context.Context, pl *compile.Pipeline, f *preview.Finding) error {
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
	err = e.exec(ctx, "INSERT INTO upstreams VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", f.Operator, api, kind,
		u.GetNamespace(), u.GetName(),
		string(u.GetUID()), created, labels, object)
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		text := func(key string) any {
			s, _ := c[key].(string)
			return s
		}
		err := e.exec(ctx, "INSERT INTO conditions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", f.Operator,
			u.GetNamespace(), u.GetName(), text("type"),
			text("status"), text("reason"), text("message"), text("lastTransitionTime"))
		if err != nil {
			return err
		}
	}
	return nil
}

// exportedContent is an upstream's labels, and the rest of it without metadata and status, both as JSON; nil where its
// values are not shown.
func exportedContent(pl *compile.Pipeline, u *unstructured.Unstructured) (labels, object any, err error) {
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
func (e *File) written(ctx context.Context, pl *compile.Pipeline) error {
	return e.exec(ctx, "INSERT OR REPLACE INTO exports VALUES (?, ?)", pl.Name, time.Now().UTC().Format(time.RFC3339))
}
