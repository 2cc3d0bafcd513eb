package check

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/pkg/cli/command"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// checkReport is what check prints about a config that has no errors.
type checkReport struct {
	file, operator string
	kinds          []string
	untyped        []string // why kinds are not typed, each reason once
	holes          []string // those through which structure enters
	closed         int      // those that stand alone too, but hold text, a number or a boolean by the schema
	status         string   // schema lines that the upstream's CustomResourceDefinition lacks
	optional       bool     // whether it can do without them
	warnings       []string
	hints          []string // what the author may want to think about
}

func reportOf(c compile.Compiled, source kinds.Source, hints []config.Error) *checkReport {
	p := c.Pipeline
	r := &checkReport{file: c.File.Path, operator: p.Name}
	r.status, r.optional = missingStatus(p)
	if !p.HasRows() {
		r.kind(c.File, source, "upstream", "watch.kind", p.Config.Watch.APIVersion, p.Upstream)
	}
	for i, d := range p.Downstreams {
		r.kind(c.File, source, "downstream "+d.Name, fmt.Sprintf("downstreams[%d].kind", i), d.Config.APIVersion, d.Kind)
		r.openHoles(p, d, "downstream "+d.Name)
	}
	if h := p.Before; h != nil {
		r.kind(c.File, source, operator.BeforeName, "deletion.before.kind", h.Config.APIVersion, h.Object.Kind)
		r.openHoles(p, h.Object, operator.BeforeName)
	}
	for i, in := range p.Inputs {
		if in.HasRows() {
			continue // which no API server has
		}
		r.kind(c.File, source, "input "+in.Name, fmt.Sprintf("inputs[%d].kind", i), in.Config.APIVersion, in.Kind)
	}
	for i := range p.Warnings {
		r.warnings = append(r.warnings, p.Warnings[i].Error())
	}
	for i := range hints {
		r.hints = append(r.hints, hints[i].Error())
	}
	return r
}

// openHoles lists the holes of a template through which structure enters.
func (r *checkReport) openHoles(p *compile.Pipeline, d *desired.Downstream, role string) {
	open, closed := p.StructureHoles(d)
	for _, h := range open {
		file, line := d.Place(h.Line)
		r.holes = append(r.holes, fmt.Sprintf("%s:%d: %s (%s)", file, line, command.OneLine(h.Text), role))
	}
	r.closed += closed
}

// kind says what is known of a kind. One that is not known at all is worth a warning: its name may be misspelt.
func (r *checkReport) kind(f *load.File, source kinds.Source, role, path, apiVersion string, k kinds.Kind) {
	head := fmt.Sprintf("%s: %s (%s): ", role, k.GVK.Kind, apiVersion)
	if k.GVR.Empty() {
		r.kinds = append(r.kinds, head+"unknown: assumed to be namespaced, not typed")
		r.warnings = append(r.warnings, unknownKind(f, source, path, k.GVK).Error())
		return
	}
	facts := []string{"cluster-scoped"}
	if k.Namespaced {
		facts[0] = "namespaced"
	}
	if k.HasStatus {
		facts = append(facts, "status subresource")
	}
	typed := "typed"
	if k.Schema == nil {
		typed = "not typed"
		if k.SchemaErr != nil && !slices.Contains(r.untyped, k.SchemaErr.Error()) {
			r.untyped = append(r.untyped, k.SchemaErr.Error())
		}
	}
	r.kinds = append(r.kinds, head+strings.Join(append(facts, typed), ", "))
}

// unknownKind says what the source has instead of a kind.
func unknownKind(f *load.File, source kinds.Source, path string, gvk schema.GroupVersionKind) *config.Error {
	_, err := source.Kind(gvk)
	var unknown *kinds.UnknownError
	if !errors.As(err, &unknown) {
		return f.Errorf(path, "", "kind %s of %s is not known", gvk.Kind, gvk.GroupVersion())
	}
	return f.Errorf(path, unknown.Fix, "%s has no kind %s in %s", unknown.Where, gvk.Kind, gvk.GroupVersion())
}

func (r *checkReport) write(w io.Writer) {
	fmt.Fprintf(w, "%s: operator %s\n", r.file, r.operator)
	for _, line := range r.kinds {
		fmt.Fprintf(w, "  %s\n", line)
	}
	for _, reason := range r.untyped {
		fmt.Fprintf(w, "  not typed: %s\n", reason)
	}
	r.writeHoles(w)
	if r.status != "" {
		if r.optional {
			fmt.Fprintln(w, "  optional: to record how the API server or admission changes downstreams, so that a restart "+
				"needs no apply, add "+
				"to the upstream's CustomResourceDefinition:")
		} else {
			fmt.Fprintln(w, "  the upstream's schema cannot store all of the status; add to its CustomResourceDefinition:")
		}
		fmt.Fprintln(w, command.Indent(r.status, "    "))
	}
	for _, line := range r.warnings {
		fmt.Fprintf(w, "  warning: %s\n", line)
	}
	for _, line := range r.hints {
		fmt.Fprintf(w, "  hint: %s\n", line)
	}
}

// writeActivationWarnings writes what the lock of an activation cannot promise.
func writeActivationWarnings(w io.Writer, a *load.ActivationFile) {
	for i, line := range a.Warnings() {
		if i == 0 {
			fmt.Fprintf(w, "%s: activation %s\n", a.Path(), a.Metadata.Name)
		}
		fmt.Fprintf(w, "  warning: %s\n", line)
	}
}

func (r *checkReport) writeHoles(w io.Writer) {
	if len(r.holes) == 0 {
		fmt.Fprintln(w, "  structure enters nowhere: every hole takes text or a number")
		return
	}
	fmt.Fprintln(w, "  structure enters through:")
	for _, line := range r.holes {
		fmt.Fprintf(w, "    %s\n", line)
	}
	if r.closed > 0 {
		fmt.Fprintf(w, "    but not through %s, declared as text, a number or a boolean\n",
			command.Count(r.closed, "other field"))
	}
}

// missingStatus are the lines that the upstream's CustomResourceDefinition lacks, empty where it lacks none; optional
// reports whether the operator does its work without them.
func missingStatus(p *compile.Pipeline) (lines string, optional bool) {
	missing, optional := generate.MissingStatus(p)
	if missing == nil {
		return "", false
	}
	text, err := yaml.Marshal(missing)
	if err != nil {
		return "", false
	}
	return strings.TrimRight(string(text), "\n"), optional
}
