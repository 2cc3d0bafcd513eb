package compile

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
	"github.com/corollary-dev/corollary/pkg/rules"
	"github.com/corollary-dev/corollary/pkg/status"
)

// compileBefore compiles deletion.before. What it reads of the upstream's status makes no downstream render again.
func compileBefore(c *compilation) {
	h, d := c.p.Before, c.p.before
	if d == nil {
		return
	}
	const path = "deletion.before"
	file, first := c.file.BeforeTemplatePos()
	compileTemplate(c, d, newSource(c.file, path+".template", h.Config.Template, file, first))
	checkScope(c, d, path)
	compileConventions(c, d)
	if h.Config.When != "" && h.Config.When != "true" {
		d.When = c.expression(path+".when", func() (*rules.Program, error) {
			return c.env.Bool(h.Config.When, rules.Upstream, operator.BeforeName)
		})
		d.WhenInputs = c.programInputs(d.When)
	}
	h.Done = beforeRule(c, path+".doneWhen", h.Config.DoneWhen)
	h.Failed = beforeRule(c, path+".failedWhen", h.Config.FailedWhen)
	checkBeforeStatus(c, path)
	v := desired.BeforeView(c.p.Settings, "metadata", "finalizers")
	keep(&v, h.Done, "downstream", nil)
	keep(&v, h.Failed, "downstream", nil)
	d.View = v
}

func beforeRule(c *compilation, path, text string) *rules.Program {
	return c.expression(path, func() (*rules.Program, error) {
		return c.env.Bool(text, rules.Downstream, operator.BeforeName)
	})
}

// checkBeforeStatus holds the upstream's kind to what the outcome of deletion.before needs: a place in the status that
// only those who may write the status can write, or anyone could say that it was done.
func checkBeforeStatus(c *compilation, path string) {
	up, list := c.p.Upstream, c.file.Operator.Status.Downstreams
	switch {
	case !c.p.StatusEnabled() || list == "" || up.GVR.Empty() && up.Schema == nil:
		return // the loader reports the former; of an unknown kind nothing can be said
	case !up.HasStatus:
		c.fail(path, "add the status subresource to the CRD (subresources: {status: {}})",
			"the outcome is recorded in the status, and %s has no status subresource: whoever may write a %s could mark it "+
				"as finished", up.GVK.Kind, up.GVK.Kind)
		return
	}
	if lacks := missingRecordFields(c.p.Settings, list); len(lacks) > 0 {
		c.fail(path, "add it to the CRD: corollary generate crd-status prints the lines",
			"the outcome is recorded in the status, and the schema of %s cannot store %s",
			up.GVK.Kind, strings.Join(lacks, ", "))
	}
}

// missingRecordFields lists what the schema cannot store of a record.
func missingRecordFields(s *operator.Settings, list string) []string {
	if !s.Storable.Stores(list) {
		return []string{list}
	}
	whole := decide.BeforeRecord(s, operator.Outcome{State: operator.StateBeforeFinished, UID: "uid",
		Target: operator.Ref{Namespace: "namespace", Name: "name"}})
	want := map[string]any{"status": map[string]any{}}
	// the loader allows only maps on the way
	_ = fieldpath.Set(want, s.DownstreamsPath, status.RecordedList([]status.Recorded{whole}))
	_, dropped := s.Storable.Fit(want["status"].(map[string]any))
	return slices.DeleteFunc(dropped, func(at string) bool {
		return at != list && !strings.HasPrefix(at, list+".") && !strings.HasPrefix(at, list+"[")
	})
}
