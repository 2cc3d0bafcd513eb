// Package healthchecks says to Argo CD and Flux what the conditions that configs name mean for the health of an object.
package healthchecks

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
	"github.com/corollary-dev/corollary/pkg/yamltext"
)

// Health is what shows whether the objects of an upstream kind are healthy: the conditions of every operator that
// watches it.
type Health struct {
	// Kind is the upstream kind.
	Kind schema.GroupVersionKind
	// Operators are those that write conditions into it, in the order of the configs.
	Operators []OperatorHealth
}

// OperatorHealth is what one operator writes about health.
type OperatorHealth struct {
	// Name of the operator.
	Name string
	// Types are the names of its conditions. Ready is never empty, the others are where the config does not name them.
	Types status.Types
	// Pause is the annotation that pauses an upstream; empty for none.
	Pause string
}

// Of gathers what configs say about the health of the kinds that they watch, kinds in the order of the configs.
// silent names the operators that write no status, and so say nothing.
func Of(files []*load.File) (list []Health, silent []string) {
	for _, f := range files {
		if enabled := f.Status.Enabled; enabled != nil && !*enabled {
			silent = append(silent, f.Metadata.Name)
			continue
		}
		kind := schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind)
		i := slices.IndexFunc(list, func(h Health) bool { return h.Kind.GroupKind() == kind.GroupKind() })
		if i < 0 {
			i = len(list)
			list = append(list, Health{Kind: kind})
		}
		c := f.Status.Conditions
		o := OperatorHealth{Name: f.Metadata.Name,
			Types: status.Types{Ready: c.Ready, Valid: c.Valid, Reconciling: c.Reconciling, Stalled: c.Stalled}}
		if pause := f.Conventions.Pause; pause != nil {
			o.Pause = pause.Annotation
		}
		list[i].Operators = append(list[i].Operators, o)
	}
	return list, silent
}

// Standard reports whether tools that know the usual conditions (kstatus, and with it Flux and kubectl wait) read the
// health right by themselves: one operator, whose conditions have the usual names.
func (h Health) Standard() bool {
	if len(h.Operators) != 1 {
		return false
	}
	t := h.Operators[0].Types
	return t.Ready == "Ready" && (t.Stalled == "Stalled" || t.Stalled == "") &&
		(t.Reconciling == "Reconciling" || t.Reconciling == "")
}

// stalling are the reasons of Ready that come with Stalled: nothing goes on before someone acts. Where a config gives
// Stalled no name, they take its place.
var stalling = func() []string {
	list := []string{status.ReasonInvalid, status.ReasonFailed}
	for _, s := range operator.States() {
		if s.NeedsPerson() {
			list = append(list, string(s))
		}
	}
	return list
}()

// WriteArgoCD writes the patch of the ConfigMap argocd-cm.
func WriteArgoCD(out *bytes.Buffer, list []Health) error {
	data := map[string]any{}
	for _, h := range list {
		script, err := h.ArgoCD()
		if err != nil {
			return err
		}
		data[h.ArgoCDKey()] = script
	}
	out.WriteString("# For the ConfigMap argocd-cm in Argo CD's namespace: the health of a resource.\n")
	text, err := yamltext.Of(map[string]any{"data": data})
	out.WriteString(text)
	return err
}

// WriteFlux writes spec.healthCheckExprs of a Kustomization.
func WriteFlux(out *bytes.Buffer, list []Health) error {
	var entries []any
	var standard []string
	for _, h := range list {
		entries = append(entries, h.Flux())
		if h.Standard() {
			standard = append(standard, h.Kind.Kind)
		}
	}
	out.WriteString("# For a Kustomization (kustomize.toolkit.fluxcd.io) that applies these kinds; it needs spec.wait " +
		"or spec.healthChecks.\n")
	if len(standard) > 0 {
		fmt.Fprintf(out, "# The conditions of %s have the usual names, which Flux reads without this too.\n",
			strings.Join(standard, ", "))
	}
	text, err := yamltext.Of(map[string]any{"spec": map[string]any{"healthCheckExprs": entries}})
	out.WriteString(text)
	return err
}
