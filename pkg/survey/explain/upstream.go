package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/rollout"
	"github.com/corollary-dev/corollary/pkg/status"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// take explains one upstream. In brief, only what it has to do with the object that was asked about.
func (e *explanation) take(ctx context.Context, p *compile.Pipeline, f *preview.Finding, brief bool) {
	up := e.begin(f.Operator, findings.Upstream(p, f))
	e.upstreamState(ctx, p, f, up)
	recorded := p.Recorded(f.Upstream)
	for _, c := range f.Changes {
		up.Downstreams = append(up.Downstreams, e.downstream(ctx, p, f, c, stateIn(recorded, p, c), brief))
	}
	for _, r := range f.Forgotten {
		up.LeftOver = append(up.LeftOver, fmt.Sprintf("%s: left over: %s", findings.Forgotten(r), findings.WhyForgotten(r)))
	}
}

// upstreamState says what concerns all downstreams of an upstream.
func (e *explanation) upstreamState(ctx context.Context, p *compile.Pipeline, f *preview.Finding, about *Upstream) {
	line := func(format string, args ...any) { about.Notes = append(about.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case f.Upstream.GetDeletionTimestamp() != nil:
		line("%s", deletionText(f.Upstream, p.Config.Conventions.Finalizers()))
	case !f.Selected:
		e.deselected(ctx, f, line)
	}
	if p.Paused(f.Upstream) {
		line("it is paused by annotation %s", p.Config.Conventions.Pause.Annotation)
	}
	if text := rolloutText(p, f); text != "" {
		line("%s", text)
	}
	if f.Desired != nil {
		for _, failure := range f.Desired.Invalid {
			line("a rule refuses it: %s", failure)
		}
	}
	for _, text := range conditionTexts(p.Config.Status.Conditions, f.Upstream) {
		line("%s", text)
	}
	if !e.written.IsZero() {
		line("the operator last wrote to it at %s", e.written.UTC().Format(time.RFC3339))
	}
	if up := f.Upstream.GetGeneration(); p.Upstream.HasStatus && p.StatusEnabled() &&
		f.Upstream.GetDeletionTimestamp() == nil {
		observed, found, _ := unstructured.NestedInt64(f.Upstream.Object, "status", "observedGeneration")
		if found && observed < up {
			line("its status is of generation %d, it is at %d: no operator has looked at it since it changed", observed, up)
		}
	}
	if text := findings.FinalizerText(p, f); text != "" {
		line("finalizer %s", text)
	}
}

// rolloutText says what a rollout has to do with an upstream; empty for nothing.
func rolloutText(p *compile.Pipeline, f *preview.Finding) string {
	if p.Config.Rollout == nil || f.Desired == nil || !f.Selected || p.Paused(f.Upstream) {
		return ""
	}
	s := rollout.Survey(p.Settings, f.Upstream, f.Desired, f.Decision, time.Now())
	switch {
	case s.Edited:
		return ""
	case s.Changes || s.Refuses != "":
		return "the config changes it, and is rolled out in steps: if it was not tried yet, it waits for its turn; see " +
			"corollary rollout status"
	case !s.Moved().IsZero():
		return "it was moved in the rollout that began at " + s.Moved().UTC().Format(time.RFC3339)
	}
	return ""
}

// deletionText names the finalizers that hold an upstream and are not the operator's.
func deletionText(upstream *unstructured.Unstructured, ours []string) string {
	others := slices.DeleteFunc(upstream.GetFinalizers(), func(name string) bool { return slices.Contains(ours, name) })
	if len(others) == 0 {
		return "it is being deleted"
	}
	return "it is being deleted, and finalizers that are not the operator's hold it until somebody removes them: " +
		strings.Join(others, ", ")
}

// conditionTexts are the conditions that the operator writes. Those that say the same share a line.
func conditionTexts(names config.Conditions, upstream *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(upstream.Object, "status", "conditions")
	heads, whys := []string{}, []string{}
	for _, name := range []string{names.Ready, names.Valid, names.Reconciling, names.Stalled} {
		for _, c := range list {
			m, _ := c.(map[string]any)
			if name == "" || m["type"] != name {
				continue
			}
			text := func(key string) string { s, _ := m[key].(string); return s }
			head, why := name+" is "+text("status"), strings.Trim(text("reason")+": "+text("message"), ": ")
			if i := slices.Index(whys, why); i >= 0 {
				heads[i] += ", " + head
				continue
			}
			heads, whys = append(heads, head), append(whys, why)
		}
	}
	for i, why := range whys {
		heads[i] = "condition " + heads[i] + ": " + why
	}
	return heads
}

// stateIn is what a status records of an object; empty for nothing.
func stateIn(recorded []status.Recorded, p *compile.Pipeline, c preview.Change) string {
	for _, r := range recorded {
		at := operator.Ref{Namespace: r.Namespace, Name: r.ObjectName}
		if r.Name == c.Downstream && (c.Index == operator.BeforeIndex ||
			!p.Downstreams[c.Index].Several() || at == c.Target) {
			return r.State
		}
	}
	return ""
}

// downstream explains one object. It shows what the status says of it beside what is decided now.
func (e *explanation) downstream(ctx context.Context, p *compile.Pipeline, f *preview.Finding,
	c preview.Change, recorded string,
	brief bool) (out Downstream) {
	out.Item = findings.ItemOf(p, f, c)
	out.Asked = out.Object.Kind.GroupKind() == e.object.Kind.GroupKind() && out.Object.At == e.object.At
	out.Ready = isReady(p, f, c)
	if brief && !out.Asked { // a link of the chain that is not the one in question
		return out
	}
	line := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	if f.Desired != nil && !c.Leftover && c.Index >= 0 && c.Object < len(f.Desired.Objects) {
		if text := p.DescribeItem(f.Desired, c.Object, f.Upstream, f.Inputs); text != "" {
			line("it follows from %s", text)
		}
	}
	when(p, f, c, line)
	e.holder(ctx, p, c, line)
	if c.Live != nil && c.Live.Status != kstatus.CurrentStatus {
		line("its own status: %s: %s", c.Live.Status, p.StatusMessage(c.Index, c.Live))
	}
	e.notReady(p, f, c, line)
	if recorded != "" && recorded != string(c.State) {
		line("the upstream's status says %s", recorded)
	}
	if c.Failure != nil {
		line("the API server refuses the write: %s: %s", c.Failure.Reason, c.Failure.Message)
	}
	if c.Note != "" {
		line("(%s)", c.Note)
	}
	if len(out.Diffs) > 0 {
		out.Fields = nextWrite(c)
	}
	return out
}

func isReady(p *compile.Pipeline, f *preview.Finding, c preview.Change) bool {
	return c.State == operator.StateInSync && c.Live != nil && c.Live.Status == kstatus.CurrentStatus &&
		len(findings.UnmetRules(p, f, c)) == 0
}

// nextWrite says what the fields below it are.
func nextWrite(c preview.Change) string {
	switch c.Action {
	case preview.Leave:
		return "it is left as it is; an apply would change:"
	case preview.Refuse:
		return "the refused write:"
	}
	return "the next write (" + string(c.Action) + "):"
}

// always is the default of when.
const always = "true"

// when says what the condition of a downstream gave.
func when(p *compile.Pipeline, f *preview.Finding, c preview.Change, line func(string, ...any)) {
	if c.Leftover || f.Desired == nil || c.Index < 0 || c.Object >= len(f.Desired.Objects) {
		return
	}
	text := p.Config.Downstreams[c.Index].When
	if text == "" || text == always || f.Desired.Objects[c.Object].Err != nil {
		return
	}
	line("when: %s: %t", text, f.Desired.Objects[c.Object].Wanted)
}
