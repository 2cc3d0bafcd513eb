package decide_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
	"github.com/corollary-dev/corollary/pkg/operator/health"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
)

// A world is what is true of an upstream and of its object, beside what the config says.
type world struct {
	name, reason string
	change       func(*operator.Input)
}

// A setting is a key of the config, or the deletion's own, with its values; the first one is the default.
type setting struct {
	name   string
	values []string
	set    func(op *config.Operator, in *operator.Input, value string)
}

// downstreamSettings are what decides, beside the world, about an object of an upstream that exists.
var downstreamSettings = []setting{
	{"updatePolicy", []string{"Apply", "CreateOnly", "Recreate"},
		func(op *config.Operator, _ *operator.Input, v string) {
			op.Downstreams[0].UpdatePolicy = config.UpdatePolicy(v)
		}},
	{"drift.policy", []string{"Enforce", "Report", "Ignore"},
		func(op *config.Operator, _ *operator.Input, v string) {
			op.Downstreams[0].Drift.Policy = config.DriftPolicy(v)
		}},
	{"adoptionPolicy", []string{"Never", "IfUnowned"},
		func(op *config.Operator, _ *operator.Input, v string) {
			op.Downstreams[0].AdoptionPolicy = config.AdoptionPolicy(v)
		}},
	{"deletionPolicy", []string{"Delete", "Orphan"},
		func(op *config.Operator, _ *operator.Input, v string) {
			op.Downstreams[0].DeletionPolicy = config.DeletionPolicy(v)
		}},
	{"ownership", []string{"Object", "Object with owner annotation", "Fields"}, func(op *config.Operator, in *operator.Input, v string) {
		if v != "Object" {
			byAnnotation(in)
		}
		if v == "Fields" {
			op.Downstreams[0].Ownership = config.OwnershipFields
			ofFields(in)
		}
	}},
	{"status", []string{"recorded", "disabled"}, func(op *config.Operator, _ *operator.Input, v string) {
		if enabled := v == "recorded"; !enabled {
			op.Status.Enabled = &enabled
		}
	}},
}

// ofFields makes the hashes of a world those of fields of an object of others.
func ofFields(in *operator.Input) {
	rename := func(h *string) {
		if *h != "" && !marks.IsOfFields(*h) {
			*h = marks.FieldsHashPrefix + *h
		}
	}
	for i := range in.Facts {
		rename(&in.Facts[i].RecordedHash)
		rename(&in.Desired.Objects[i].Hash)
		if live := in.Facts[i].Live; live != nil && live.Managed {
			rename(&live.Hash)
		}
	}
}

// byAnnotation has the objects of a world marked by the annotation instead of the reference.
func byAnnotation(in *operator.Input) {
	mark := func(live *drift.Live) {
		if live != nil && len(live.Owners) > 0 && live.Owners[0].UID == upstreamUID && live.Owners[0].Kind != "" {
			live.OwnerMark, live.MarkApplied, live.Owners = "apps/web/"+string(upstreamUID), live.Owners[0].Applied, live.Owners[1:]
		}
	}
	for i := range in.Facts {
		mark(in.Facts[i].Live)
		in.Desired.Objects[i].Reference = false
	}
	for _, own := range in.Leftovers {
		mark(own.Live)
	}
}

// deletionSettings are what decides about an object of an upstream that is being deleted.
var deletionSettings = []setting{
	downstreamSettings[3], downstreamSettings[4],
	{"deletion.wait", []string{"false", "true"}, func(op *config.Operator, _ *operator.Input, v string) { op.Deletion.Wait = v == "true" }},
	{"--cascade", []string{"background", "foreground", "orphan"}, func(_ *config.Operator, in *operator.Input, v string) {
		if v != "background" {
			in.Cascade = operator.Cascade(v)
		}
	}},
}

// startingWith returns worlds that are changed first by start.
func startingWith(start func(*operator.Input), worlds []world) []world {
	for i, w := range worlds {
		worlds[i].change = func(in *operator.Input) {
			start(in)
			w.change(in)
		}
	}
	return worlds
}

// A section of a golden file has what is decided in some worlds, for every combination of the settings.
type section struct {
	title    string
	worlds   []world
	settings []setting
	// decide returns some results. Of each the file has the lines in which it is not empty.
	decide func(*health.Checks, operator.Input) []string
}

// finalizerSettings are what decides about the finalizer of an upstream.
var finalizerSettings = []setting{
	{"the upstream has", []string{"no finalizer", "the finalizer", "the previous one"}, func(_ *config.Operator, in *operator.Input, v string) {
		in.HasFinalizer, in.HasPreviousFinalizer = v != "no finalizer", v == "the previous one"
	}},
	{"owner", []string{"reference", "annotation"}, func(_ *config.Operator, in *operator.Input, v string) {
		in.Desired.Objects[0].Reference = in.Desired.Objects[0].Reference && v == "reference"
	}},
	downstreamSettings[3],
	{"deletion", []string{"{}", "wait", "before"}, func(op *config.Operator, _ *operator.Input, v string) {
		if op.Deletion.Wait = v == "wait"; v == "before" {
			op.Deletion.Before = new(before)
		}
	}},
	{"conventions.finalizer", []string{"set", "not set"}, func(op *config.Operator, _ *operator.Input, v string) {
		if v == "not set" {
			op.Conventions.Finalizer = ""
		}
	}},
}

// What is decided about one object, for every combination of a world and the settings. The golden file names for each
// world only the settings that matter there; a change of any decision changes a line of it.
func TestDecisionMatrix(t *testing.T) {
	target := func(p *health.Checks, in operator.Input) []string {
		if live := in.Facts[0].Live; live != nil && live.Secret != nil { // such a world is one of generated values
			p.Settings.Downstreams[0].Generated = []operator.GeneratedField{{Key: "password"}}
		}
		addedForGood(t, p, in)
		d := decide.Decide(p.Settings, in)
		return []string{described(d.Outcomes[0]), finalizerWords[d.Finalizer]}
	}
	goldenMatrix(t, "testdata/decisions.txt", []section{
		{"An object of an upstream that exists", targetWorlds(), downstreamSettings, target},
		{"An object with names or marks that the config has left", previousWorlds(), downstreamSettings, target},
		{"An object that is at no target (any more)", leftoverWorlds(), downstreamSettings, func(p *health.Checks, in operator.Input) []string {
			addedForGood(t, p, in)
			d := decide.Decide(p.Settings, in)
			if d.Leftovers[0].UID != "live-0" {
				t.Errorf("the outcome is about %q, not about the leftover", d.Leftovers[0].UID)
			}
			return []string{described(d.Leftovers[0]), finalizerWords[d.Finalizer]}
		}},
		{"An object of an upstream that is being deleted", deletionWorlds(), deletionSettings, decidedDeletion},
		{"The finalizer of an upstream", finalizerWorlds(), finalizerSettings, func(p *health.Checks, in operator.Input) []string {
			addBefore(t, p)
			addedForGood(t, p, in)
			return []string{cmp.Or(finalizerWords[decide.Decide(p.Settings, in).Finalizer], "left alone")}
		}},
		{"In mode Observe", observedWorlds(), downstreamSettings[:3], func(p *health.Checks, in operator.Input) []string {
			p.Config.Mode = config.ModeObserve
			o := decide.Decide(p.Settings, in).Outcomes[0]
			if o.Action == operator.ActionCompare {
				t.Errorf("a dry run is asked for: %s", o.Message)
			}
			return []string{described(o)}
		}},
	})
}

// decidedDeletion has what is decided, and whether the upstream stays: also for a process that knows only what the
// status records, since the garbage collector removes the finalizer that says foreground.
func decidedDeletion(p *health.Checks, in operator.Input) []string {
	d := decide.Deletion(p.Settings, in)
	if len(d.Leftovers) == 0 {
		return []string{"gone", finalizerWords[d.Finalizer]}
	}
	waits := ""
	if d.Waits {
		later, isForeground := decidedAgain(p, in, d)
		waits = fmt.Sprintf("waits; by the status alone: waits %t, foreground %t", later.Waits && later.Finalizer == operator.FinalizerLeave, isForeground)
	}
	return []string{described(d.Leftovers[0]), finalizerWords[d.Finalizer], waits}
}

// goldenMatrix compares sections with a golden file.
func goldenMatrix(t *testing.T, path string, sections []section) {
	t.Helper()
	var out bytes.Buffer
	for _, s := range sections {
		fmt.Fprintf(&out, "# %s\n\n", s.title)
		for _, w := range s.worlds {
			fmt.Fprintf(&out, "%s: %s\n", w.name, w.reason)
			results := map[int]map[string]string{}
			w.each(s.settings, func(key string, p *health.Checks, in operator.Input) {
				for i, text := range s.decide(p, in) {
					if results[i] == nil {
						results[i] = map[string]string{}
					}
					results[i][key] = text
				}
			})
			for i := range len(results) {
				for _, line := range lines(s.settings, results[i], nil) {
					if !strings.HasSuffix(line, "→ ") {
						fmt.Fprintf(&out, "    %s\n", line)
					}
				}
			}
			out.WriteString("\n")
		}
	}
	golden.File(t, path, out.Bytes())
}

// addedForGood fails if the finalizer is added and then removed, though nothing else has changed: without end.
func addedForGood(t *testing.T, p *health.Checks, in operator.Input) {
	t.Helper()
	in.HasFinalizer, in.HasPreviousFinalizer = false, false
	if decide.Decide(p.Settings, in).Finalizer != operator.FinalizerAdd {
		return
	}
	if in.HasFinalizer = true; decide.Decide(p.Settings, in).Finalizer == operator.FinalizerRemove {
		t.Error("the finalizer is added and then removed")
	}
}

// finalizerWords are what a decision says of the finalizer of an upstream.
var finalizerWords = map[operator.FinalizerAction]string{
	operator.FinalizerAdd: "finalizer added", operator.FinalizerRemove: "finalizer removed", operator.FinalizerSwap: "finalizer replaced"}

func described(o operator.Outcome) string {
	text := string(o.State)
	if o.Action != operator.ActionNone {
		text += ", " + string(o.Action)
	}
	if o.Theirs {
		text += ", not ours"
	}
	if o.ReplacesPrevious {
		text += ", replaces previous names"
	}
	if o.RequeueAfter > 0 {
		text += ", again after " + o.RequeueAfter.String()
	}
	if o.Message != "" {
		text += ": " + o.Message
	}
	return text
}

// each calls decide for every combination of the settings, with their values as a key.
func (w world) each(settings []setting, decide func(key string, p *health.Checks, in operator.Input)) {
	combinations := [][]string{nil}
	for _, s := range settings {
		var longer [][]string
		for _, c := range combinations {
			for _, value := range s.values {
				longer = append(longer, append(slices.Clone(c), value))
			}
		}
		combinations = longer
	}
	for _, c := range combinations {
		in := inSyncInput()
		w.change(&in)
		p := onePipeline(func(op *config.Operator) {
			for i, s := range settings {
				s.set(op, &in, c[i])
			}
		})
		decide(strings.Join(c, "|"), p, in)
	}
}

// lines writes what is decided where the first settings have the given values. A setting is named only where its value
// matters there.
func lines(settings []setting, results map[string]string, given []string) []string {
	at := len(given)
	if at == len(settings) {
		return []string{"→ " + results[strings.Join(given, "|")]}
	}
	var all [][]string
	same := true
	for _, value := range settings[at].values {
		all = append(all, lines(settings, results, append(slices.Clone(given), value)))
		same = same && slices.Equal(all[0], all[len(all)-1])
	}
	if same {
		return all[0]
	}
	var out []string
	for i, value := range settings[at].values {
		if j := slices.IndexFunc(all[:i], func(earlier []string) bool { return slices.Equal(earlier, all[i]) }); j >= 0 {
			continue
		}
		values := value
		for k := i + 1; k < len(all); k++ {
			if slices.Equal(all[k], all[i]) {
				values += " or " + settings[at].values[k]
			}
		}
		for _, line := range all[i] {
			out = append(out, strings.Replace(fmt.Sprintf("%s %s, %s", settings[at].name, values, line), ", →", " →", 1))
		}
	}
	return out
}
