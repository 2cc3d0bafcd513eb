package pipeline

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// A world is what is true of an upstream and of its object, beside what the config says.
type world struct {
	name, reason string
	change       func(*Input)
}

// A setting is a key of the config, or the deletion's own, with its values; the first one is the default.
type setting struct {
	name   string
	values []string
	set    func(op *config.Operator, in *Input, value string)
}

// downstreamSettings are what decides, beside the world, about an object of an upstream that exists.
var downstreamSettings = []setting{
	{"updatePolicy", []string{"Apply", "CreateOnly", "Recreate"},
		func(op *config.Operator, _ *Input, v string) { op.Downstreams[0].UpdatePolicy = config.UpdatePolicy(v) }},
	{"drift.policy", []string{"Enforce", "Report", "Ignore"},
		func(op *config.Operator, _ *Input, v string) { op.Downstreams[0].Drift.Policy = config.DriftPolicy(v) }},
	{"adoptionPolicy", []string{"Never", "IfUnowned"},
		func(op *config.Operator, _ *Input, v string) {
			op.Downstreams[0].AdoptionPolicy = config.AdoptionPolicy(v)
		}},
	{"deletionPolicy", []string{"Delete", "Orphan"},
		func(op *config.Operator, _ *Input, v string) {
			op.Downstreams[0].DeletionPolicy = config.DeletionPolicy(v)
		}},
	{"ownership", []string{"Object", "Object with owner annotation", "Fields"}, func(op *config.Operator, in *Input, v string) {
		if v != "Object" {
			byAnnotation(in)
		}
		if v == "Fields" {
			op.Downstreams[0].Ownership = config.OwnershipFields
			ofFields(in)
		}
	}},
	{"status", []string{"recorded", "disabled"}, func(op *config.Operator, _ *Input, v string) {
		if enabled := v == "recorded"; !enabled {
			op.Status.Enabled = &enabled
		}
	}},
}

// ofFields makes the hashes of a world those of fields of an object of others.
func ofFields(in *Input) {
	rename := func(h *string) {
		if *h != "" && !IsOfFields(*h) {
			*h = fieldsHashPrefix + *h
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
func byAnnotation(in *Input) {
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
	{"deletion.wait", []string{"false", "true"}, func(op *config.Operator, _ *Input, v string) { op.Deletion.Wait = v == "true" }},
	{"--cascade", []string{"background", "foreground", "orphan"}, func(_ *config.Operator, in *Input, v string) {
		if v != "background" {
			in.Cascade = Cascade(v)
		}
	}},
}

// What is decided about one object, for every combination of a world and the settings. The golden file names for each world only the
// settings that matter there; a change of any decision changes a line of it.
func TestDecisionMatrix(t *testing.T) {
	var out bytes.Buffer
	section := func(title string, worlds []world, settings []setting, decide func(*Pipeline, Input) (Outcome, FinalizerAction)) {
		fmt.Fprintf(&out, "# %s\n\n", title)
		for _, w := range worlds {
			fmt.Fprintf(&out, "%s: %s\n", w.name, w.reason)
			outcomes, finalizers := map[string]string{}, map[string]string{}
			w.each(settings, func(key string, p *Pipeline, in Input) {
				o, f := decide(p, in)
				outcomes[key], finalizers[key] = described(o), finalizerWords[f]
			})
			for _, line := range lines(settings, outcomes, nil) {
				fmt.Fprintf(&out, "    %s\n", line)
			}
			for _, line := range lines(settings, finalizers, nil) {
				if !strings.HasSuffix(line, "→ ") {
					fmt.Fprintf(&out, "    %s\n", line)
				}
			}
			out.WriteString("\n")
		}
	}
	section("An object of an upstream that exists", targetWorlds(), downstreamSettings, func(p *Pipeline, in Input) (Outcome, FinalizerAction) {
		d := p.Decide(in)
		return d.Outcomes[0], d.Finalizer
	})
	section("An object that is at no target (any more)", leftoverWorlds(), downstreamSettings, func(p *Pipeline, in Input) (Outcome, FinalizerAction) {
		d := p.Decide(in)
		if d.Leftovers[0].UID != "live-0" {
			t.Errorf("the outcome is about %q, not about the leftover", d.Leftovers[0].UID)
		}
		return d.Leftovers[0], d.Finalizer
	})
	section("An object of an upstream that is being deleted", deletionWorlds(), deletionSettings, func(p *Pipeline, in Input) (Outcome, FinalizerAction) {
		d := p.DecideDeletion(in)
		if len(d.Leftovers) == 0 {
			return Outcome{State: "gone"}, d.Finalizer
		}
		return d.Leftovers[0], d.Finalizer
	})
	golden.File(t, "testdata/decisions.txt", out.Bytes())
}

// finalizerWords are what a decision says of the finalizer of an upstream that has it.
var finalizerWords = map[FinalizerAction]string{FinalizerAdd: "finalizer added", FinalizerRemove: "finalizer removed", FinalizerSwap: "finalizer replaced"}

func described(o Outcome) string {
	text := string(o.State)
	if o.Action != ActionNone {
		text += ", " + string(o.Action)
	}
	if o.Theirs {
		text += ", not ours"
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
func (w world) each(settings []setting, decide func(key string, p *Pipeline, in Input)) {
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

// lines writes what is decided where the first settings have the given values. A setting is named only where its value matters there.
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

// targetWorlds are the worlds of an object that the upstream asks for.
func targetWorlds() []world {
	return []world{
		{"in sync", "equal hash and equal projection need nothing", func(*Input) {}},
		{"absent", "what is missing is created", func(in *Input) { in.Facts[0].Live = nil }},
		{"paused", "a paused upstream is left alone, whatever exists", func(in *Input) {
			in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
			in.Facts[0].Live = nil
		}},
		{"invalid", "an invalid upstream takes nothing away and makes nothing", func(in *Input) {
			in.Desired = &Desired{Invalid: []rules.Failure{{Message: "too many"}}, Objects: []DesiredObject{{}}}
			in.Facts[0].Live.P = other
		}},
		{"not rendered", "an error in the template leaves things alone",
			func(in *Input) { in.Desired.Objects[0] = DesiredObject{Err: errTest} }},
		{"unwanted", "when is false; what exists is decided on as a leftover",
			func(in *Input) { in.Desired.Objects[0] = DesiredObject{}; in.Facts[0].Live = nil }},
		{"labels lost", "what no watch shows gets its labels back, and nothing else where drift is not repaired",
			func(in *Input) { in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other }},
		{"labels lost and a change", "what the upstream asks for is applied, with the labels", func(in *Input) {
			in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other
			in.Facts[0].RecordedHash = "v1-before"
		}},
		{"terminating, drifted", "a finalizer may keep it in force for long",
			func(in *Input) { in.Facts[0].Live.Deleting = true; in.Facts[0].Live.P = other }},
		{"terminating, changed", "an apply of a changed desired state to a terminating object would answer 200 and be lost with it",
			func(in *Input) { in.Facts[0].Live.Deleting = true; in.Facts[0].RecordedHash = "v1-old" }},
		{"terminating", "it is created again once it is gone", func(in *Input) { in.Facts[0].Live.Deleting = true }},
		{"foreign", "an object without our mark is not taken unless the config says so, and nobody else owns it",
			func(in *Input) { in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", Name: "web", UID: "x"}} }},
		{"a second owner", "somebody added an owner, and the upstream that it was made for is gone", func(in *Input) {
			live := &drift.Live{Namespace: "apps", Name: "web", UID: "x", Managed: true, Hash: hash}
			live.Owners = []drift.OwnerRef{{Kind: "ConfigMap", Name: "other", UID: "other-1"}}
			in.Facts[0] = Facts{Live: live}
		}},
		{"foreign, with a controller", "that is respected even where adoption is allowed", func(in *Input) {
			in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", UID: "x", Owners: []drift.OwnerRef{{Kind: "Thing", Name: "else", UID: "up-2", Controller: true}}}}
		}},
		{"another operator's", "its owner annotation says so, whatever the key is", func(in *Input) {
			in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", UID: "x", Owners: []drift.OwnerRef{{Name: "apps/else (annotation example.com/by)", UID: "up-2", Controller: true}}}}
		}},
		{"marked by an earlier name of our annotation", "it is this upstream's own", func(in *Input) {
			in.Facts[0] = Facts{Live: &drift.Live{Namespace: "apps", UID: "x", Owners: []drift.OwnerRef{{Name: "apps/web (annotation example.com/by)", UID: upstreamUID, Controller: true}}}}
		}},
		{"two upstreams, one target", "the second is in conflict, even where its status claims the object", func(in *Input) {
			in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Owners[0].Name = "up-2", "else"
		}},
		{"an earlier upstream of that name", "its downstream goes with it, and ours is created then: that is no conflict",
			func(in *Input) { in.Facts[0].Live.Owners[0].UID = "up-0" }},
		{"an earlier upstream's, going", "it says so already",
			func(in *Input) { in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Deleting = "up-0", true }},
		{"a kind of that name in another group", "our field manager did not apply the reference, and that owner may stay",
			func(in *Input) {
				forged(in)
				in.Facts[0].Live.Owners[0].UID = "up-0"
			}},
		{"an upstream of that name in another namespace", "it is another one, and is named as such", func(in *Input) {
			in.Facts[0].Live.Namespace, in.Facts[0].Live.Owners[0].UID = "else", "up-0"
		}},
		{"an owner annotation of somebody else's", "the same namespace and name, but another manager applies it", func(in *Input) {
			annotate(in, false)
			in.Facts[0].Live.OwnerMark, in.Facts[0].Live.MarkTheirs = "apps/web/up-0", true
		}},
		{"marks stripped", "an object whose uid is recorded is ours without its marks",
			func(in *Input) { in.Facts[0].Live.Owners = nil; in.Facts[0].Live.P = other }},
		{"unrecorded", "created or adopted, and the process died before it was recorded: the API server records that we applied the mark", unrecorded},
		{"forged", "whoever may create the kind can write our mark, but not our entry in managedFields", forged},
		{"a plain reference on another's", "an object has one controller and may have many owners", func(in *Input) {
			in.Facts[0].Trusted = false
			in.Facts[0].Live.Owners = []drift.OwnerRef{{Kind: "Thing", Name: "else", UID: "up-2", Controller: true}, {Kind: "Thing", Name: "web", UID: upstreamUID}}
		}},
		{"deleted again and again", "somebody who deletes what is created is not fought at full speed either", func(in *Input) {
			in.Facts[0] = Facts{Spaced: time.Second}
		}},
		{"keys that come back", "what our own apply and its clean-up returned is the API server's own", func(in *Input) {
			in.Facts[0].Live.Extra, in.Facts[0].Live.P, in.Facts[0].Baseline = true, other, &other
		}},
		{"unrecorded, drifted", "what others change of it since is drift like any other; with CreateOnly it is what may be another object",
			func(in *Input) { unrecorded(in); in.Facts[0].Live.P = other }},
		{"forged, recorded", "another writer owns the mark of an object whose uid is recorded",
			func(in *Input) { in.Facts[0].Live.Owners[0].Applied = false }},

		{"the server's spelling", "the projection that our own apply returned counts as in sync",
			func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Baseline = &other }},
		{"hash differs but projection is baseline", "both must hold", func(in *Input) {
			in.Facts[0].Live.Hash = "v1-old"
			in.Facts[0].RecordedHash = "v1-old"
			in.Facts[0].Live.P, in.Facts[0].Baseline = other, &other
		}},
		{"another hash", "the recorded hash is not what is asked for now",
			func(in *Input) { in.Facts[0].RecordedHash = "v1-old"; in.Facts[0].Live.Hash = "v1-old" }},
		{"hash annotation stripped", "the desired object has not changed, so it is drift",
			func(in *Input) { in.Facts[0].Live.Hash = "" }},
		{"drift", "the desired object is the same, the live object is not", func(in *Input) { in.Facts[0].Live.P = other }},
		{"added keys", "keys that others add to an exclusive field are drift", func(in *Input) { in.Facts[0].Live.Extra = true }},
		{"drift, settled", "a dry run that changes nothing is no drift",
			func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Verdict.SameByDryRun = new(true) }},
		{"drift, confirmed", "a dry run changes something",
			func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Verdict.SameByDryRun = new(false) }},
		{"unverified", "an update that was not compared with a new object is completed",
			func(in *Input) { in.Facts[0].Unverified = true }},
		{"stale", "what an update cannot change is reported, and nothing is written",
			func(in *Input) { in.Facts[0].Verdict.Stale = ".spec.x" }},
		{"contested", "a writer that undid three repairs is not fought at full speed", func(in *Input) {
			in.Facts[0].Live.P, in.Facts[0].Spaced = other, time.Second
			in.Facts[0].Verdict.Contenders = ".data.x (last written by kubectl-edit)"
		}},
		{"another hash and drift", "an update brings both in order",
			func(in *Input) { in.Facts[0].Live.P = other; in.Facts[0].Live.Hash = "v1-old" }},
		{"finished and gone", "a Job that succeeded is not run again", func(in *Input) {
			in.Facts[0] = Facts{RecordedHash: "v1-old", RecordedAt: in.Desired.Objects[0].Target, Finished: true}
		}},
		{"finished, another name", "another name is another piece of work", func(in *Input) {
			in.Facts[0] = Facts{RecordedHash: hash, RecordedAt: Ref{Name: "other"}, Finished: true}
		}},
		{"deleted by hand", "what had not finished is created again", func(in *Input) { in.Facts[0] = Facts{RecordedHash: hash} }},
		{"refused as immutable", "only the policy that says so deletes it", func(in *Input) {
			in.Facts[0].Live.Hash, in.Facts[0].RecordedHash = "v1-old", "v1-old"
			in.Facts[0].Verdict.Immutable = true
		}},
		{"foreign, hidden", "the watch does not show it: the create was refused", func(in *Input) {
			in.Facts[0] = Facts{Verdict: Verdict{Foreign: "apps/web exists and is not ours"}}
		}},
		{"terminating and absent from the desired", "what goes is not deleted twice", func(in *Input) {
			in.Facts[0].Live.Deleting = true
			in.Desired.Objects[0] = DesiredObject{}
		}},
		{"an input is missing", "what cannot be known before it is there is left alone", func(in *Input) {
			in.Desired.Objects[0] = DesiredObject{Err: &waiting{"input x is missing"}}
		}},
	}
}

// leftoverWorlds are those of an object of ours that is at no target. Its successor is in sync unless the world says otherwise.
func leftoverWorlds() []world {
	foreign := func(in *Input) {
		in.Facts[0] = Facts{Live: &drift.Live{UID: "x", Managed: true, OwnerMark: "apps/other/up-2"}}
	}
	worlds := []world{
		{"the successor exists", "after a rename the old one goes", func(*Input) {}},
		{"the successor is being created", "the old one serves until the new one exists", func(in *Input) { in.Facts[0].Live = nil }},
		{"the successor is in conflict", "a failure takes nothing away",
			func(in *Input) { in.Facts[0] = Facts{Live: &drift.Live{UID: "x"}} }},
		{"another upstream has the name", "nothing is deleted for a name", foreign},
		{"the successor is deleted again and again", "a contested successor that does not exist takes nothing away",
			func(in *Input) { in.Facts[0] = Facts{Spaced: time.Second} }},
		{"invalid", "an invalid upstream takes nothing away",
			func(in *Input) { in.Desired = &Desired{Invalid: []rules.Failure{{}}, Objects: []DesiredObject{{}}} }},
		{"not rendered", "a broken template takes nothing away",
			func(in *Input) { in.Desired.Objects[0] = DesiredObject{Err: errTest} }},
		{"an input is missing", "what exists is not superseded by something that nobody knows",
			func(in *Input) { in.Desired.Objects[0] = DesiredObject{Err: &waiting{"input is missing"}} }},
		{"unwanted", "when has become false", func(in *Input) { in.Desired.Objects[0] = DesiredObject{}; in.Facts[0].Live = nil }},
		{"unselected", "an upstream that lost the label is the same", func(in *Input) { in.Selected = false }},
		{"terminating", "it is not deleted again", func(in *Input) { in.Leftovers[0].Live.Deleting = true }},
		{"deleted again and again", "somebody keeps creating it", func(in *Input) { in.Leftovers[0].Spaced = time.Second }},
	}
	for i, w := range worlds {
		worlds[i].change = func(in *Input) {
			old := ourLive()
			old.Name, old.UID = "old", "live-0"
			in.Leftovers = []Owned{{Live: old, Certain: true, Recorded: true}}
			w.change(in)
		}
	}
	return worlds
}

// deletionWorlds are those of an object of an upstream that is being deleted.
func deletionWorlds() []world {
	worlds := []world{
		{"owner reference", "the garbage collector deletes it, unless it is to be waited for or kept", func(*Input) {}},
		{"owner annotation", "nobody else deletes it", func(in *Input) {
			in.Leftovers[0].Live.Owners, in.Leftovers[0].Live.OwnerMark = nil, "apps/web/"+string(upstreamUID)
		}},
		{"terminating", "it is not deleted again", func(in *Input) { in.Leftovers[0].Live.Deleting = true }},
		{"nothing left", "the upstream may go", func(in *Input) { in.Leftovers = nil }},
		{"deleted again and again", "somebody keeps creating it", func(in *Input) { in.Leftovers[0].Spaced = time.Second }},
	}
	for i, w := range worlds {
		worlds[i].change = func(in *Input) {
			*in = deleted()
			w.change(in)
		}
	}
	return worlds
}
