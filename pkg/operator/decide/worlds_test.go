package decide_test

import (
	"slices"
	"time"

	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// targetWorlds are the worlds of an object that the upstream asks for.
func targetWorlds() []world {
	return []world{
		{"in sync", "equal hash and equal projection need nothing", func(*operator.Input) {}},
		{"absent", "what is missing is created", func(in *operator.Input) { in.Facts[0].Live = nil }},
		{"paused", "a paused upstream is left alone, whatever exists", func(in *operator.Input) {
			in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
			in.Facts[0].Live = nil
		}},
		{"invalid", "an invalid upstream takes nothing away and makes nothing", func(in *operator.Input) {
			in.Desired = &operator.Desired{Invalid: []string{"too many"}, Objects: []operator.DesiredObject{{}}}
			in.Facts[0].Live.P = other
		}},
		{"not rendered", "an error in the template leaves things alone",
			func(in *operator.Input) { in.Desired.Objects[0] = operator.DesiredObject{Err: errTest} }},
		{"unwanted", "when is false; what exists is decided on as a leftover",
			func(in *operator.Input) { in.Desired.Objects[0] = operator.DesiredObject{}; in.Facts[0].Live = nil }},
		{"labels lost", "what no watch shows gets its labels back, and nothing else where drift is not repaired",
			func(in *operator.Input) { in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other }},
		{"labels lost and a change", "what the upstream asks for is applied, with the labels", func(in *operator.Input) {
			in.Facts[0].Live.Unselected, in.Facts[0].Live.P = true, other
			in.Facts[0].RecordedHash = "v1-before"
		}},
		{"terminating, drifted", "a finalizer may keep it in force for long",
			func(in *operator.Input) { in.Facts[0].Live.Deleting = true; in.Facts[0].Live.P = other }},
		{"terminating, changed", "an apply of a changed desired state to a terminating object would answer 200 and be lost with it",
			func(in *operator.Input) { in.Facts[0].Live.Deleting = true; in.Facts[0].RecordedHash = "v1-old" }},
		{"terminating", "it is created again once it is gone", func(in *operator.Input) { in.Facts[0].Live.Deleting = true }},
		{"foreign", "an object without our mark is not taken unless the config says so, and nobody else owns it",
			func(in *operator.Input) {
				in.Facts[0] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{Namespace: "apps", Name: "web", UID: "x"}}}
			}},
		{"a second owner", "somebody added an owner, and the upstream that it was made for is gone", func(in *operator.Input) {
			live := &drift.Live{Identity: drift.Identity{Namespace: "apps", Name: "web", UID: "x"}, Projection: drift.Projection{Managed: true}, Hash: hash}
			live.Owners = []drift.OwnerRef{{Kind: "ConfigMap", Name: "other", UID: "other-1"}}
			in.Facts[0] = operator.Facts{Live: live}
		}},
		{"foreign, with a controller", "that is respected even where adoption is allowed", func(in *operator.Input) {
			in.Facts[0] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{Namespace: "apps", UID: "x"},
				Owners: []drift.OwnerRef{{Kind: "Thing", Name: "else", UID: "up-2", Controller: true}}}}
		}},
		{"another operator's", "its owner annotation says so, whatever the key is", func(in *operator.Input) {
			in.Facts[0] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{Namespace: "apps", UID: "x"},
				Owners: []drift.OwnerRef{{Name: "apps/else (annotation example.com/by)", UID: "up-2", Controller: true}}}}
		}},
		{"marked by an earlier name of our annotation", "it is this upstream's own", func(in *operator.Input) {
			in.Facts[0] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{Namespace: "apps", UID: "x"},
				Owners: []drift.OwnerRef{{Name: "apps/web (annotation example.com/by)", UID: upstreamUID, Controller: true}}}}
		}},
		{"two upstreams, one target", "the second is in conflict, even where its status claims the object", func(in *operator.Input) {
			in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Owners[0].Name = "up-2", "else"
		}},
		{"an earlier upstream of that name", "its downstream goes with it, and ours is created then: that is no conflict",
			func(in *operator.Input) { in.Facts[0].Live.Owners[0].UID = "up-0" }},
		{"an earlier upstream's, going", "it says so already",
			func(in *operator.Input) { in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Deleting = "up-0", true }},
		{"a kind of that name in another group", "our field manager did not apply the reference, and that owner may stay",
			func(in *operator.Input) {
				forged(in)
				in.Facts[0].Live.Owners[0].UID = "up-0"
			}},
		{"an upstream of that name in another namespace", "it is another one, and is named as such", func(in *operator.Input) {
			in.Facts[0].Live.Namespace, in.Facts[0].Live.Owners[0].UID = "else", "up-0"
		}},
		{"an owner annotation of somebody else's", "the same namespace and name, but another manager applies it", func(in *operator.Input) {
			annotate(in, false)
			in.Facts[0].Live.OwnerMark, in.Facts[0].Live.MarkTheirs = "apps/web/up-0", true
		}},
		{"marks stripped", "an object whose uid is recorded is ours without its marks",
			func(in *operator.Input) { in.Facts[0].Live.Owners = nil; in.Facts[0].Live.P = other }},
		{"unrecorded", "created or adopted, and the process died before it was recorded: the API server records that we applied the mark", unrecorded},
		{"forged", "whoever may create the kind can write our mark, but not our entry in managedFields", forged},
		{"a plain reference on another's", "an object has one controller and may have many owners", func(in *operator.Input) {
			in.Facts[0].Trusted = false
			in.Facts[0].Live.Owners = []drift.OwnerRef{{Kind: "Thing", Name: "else", UID: "up-2", Controller: true}, {Kind: "Thing", Name: "web", UID: upstreamUID}}
		}},
		{"deleted again and again", "somebody who deletes what is created is not fought at full speed either", func(in *operator.Input) {
			in.Facts[0] = operator.Facts{Spaced: time.Second}
		}},
		{"keys that come back", "what our own apply and its clean-up returned is the API server's own", func(in *operator.Input) {
			in.Facts[0].Live.Extra, in.Facts[0].Live.P, in.Facts[0].Baseline = true, other, &other
		}},
		{"unrecorded, drifted", "what others change of it since is drift like any other; with CreateOnly it is what may be another object",
			func(in *operator.Input) { unrecorded(in); in.Facts[0].Live.P = other }},
		{"forged, recorded", "another writer owns the mark of an object whose uid is recorded",
			func(in *operator.Input) { in.Facts[0].Live.Owners[0].Applied = false }},

		{"the server's spelling", "the projection that our own apply returned counts as in sync",
			func(in *operator.Input) { in.Facts[0].Live.P = other; in.Facts[0].Baseline = &other }},
		{"hash differs but projection is baseline", "both must hold", func(in *operator.Input) {
			in.Facts[0].Live.Hash = "v1-old"
			in.Facts[0].RecordedHash = "v1-old"
			in.Facts[0].Live.P, in.Facts[0].Baseline = other, &other
		}},
		{"another hash", "the recorded hash is not what is asked for now",
			func(in *operator.Input) { in.Facts[0].RecordedHash = "v1-old"; in.Facts[0].Live.Hash = "v1-old" }},
		{"hash annotation stripped", "the desired object has not changed, so it is drift",
			func(in *operator.Input) { in.Facts[0].Live.Hash = "" }},
		{"drift", "the desired object is the same, the live object is not", func(in *operator.Input) { in.Facts[0].Live.P = other }},
		{"added keys", "keys that others add to an exclusive field are drift", func(in *operator.Input) { in.Facts[0].Live.Extra = true }},
		{"drift, settled", "a dry run that changes nothing is no drift",
			func(in *operator.Input) { in.Facts[0].Live.P = other; in.Facts[0].Verdict.SameByDryRun = new(true) }},
		{"drift, confirmed", "a dry run changes something",
			func(in *operator.Input) { in.Facts[0].Live.P = other; in.Facts[0].Verdict.SameByDryRun = new(false) }},
		{"unverified", "an update that was not compared with a new object is completed",
			func(in *operator.Input) { in.Facts[0].Unverified = true }},
		{"stale", "what an update cannot change is reported, and nothing is written",
			func(in *operator.Input) { in.Facts[0].Verdict.Stale = ".spec.x" }},
		{"contested", "a writer that undid three repairs is not fought at full speed", func(in *operator.Input) {
			in.Facts[0].Live.P, in.Facts[0].Spaced = other, time.Second
			in.Facts[0].Verdict.Contenders = ".data.x (last written by kubectl-edit)"
		}},
		{"another hash and drift", "an update brings both in order",
			func(in *operator.Input) { in.Facts[0].Live.P = other; in.Facts[0].Live.Hash = "v1-old" }},
		{"finished and gone", "a Job that succeeded is not run again", func(in *operator.Input) {
			in.Facts[0] = operator.Facts{RecordedHash: "v1-old", RecordedAt: in.Desired.Objects[0].Target, Finished: true}
		}},
		{"finished, another name", "another name is another piece of work", func(in *operator.Input) {
			in.Facts[0] = operator.Facts{RecordedHash: hash, RecordedAt: operator.Ref{Name: "other"}, Finished: true}
		}},
		{"deleted by hand", "what had not finished is created again", func(in *operator.Input) { in.Facts[0] = operator.Facts{RecordedHash: hash} }},
		{"refused as immutable", "only the policy that says so deletes it", func(in *operator.Input) {
			in.Facts[0].Live.Hash, in.Facts[0].RecordedHash = "v1-old", "v1-old"
			in.Facts[0].Verdict.Immutable = true
		}},
		{"refused as immutable, with generated values that a finalizer holds", "nobody knows when it is gone, and whether a process that has read them is left",
			func(in *operator.Input) {
				in.Facts[0].Live.Hash, in.Facts[0].RecordedHash = "v1-old", "v1-old"
				in.Facts[0].Verdict.Immutable = true
				in.Facts[0].Live.Secret = &drift.Secret{Keys: []string{"password"}, HeldBy: "finalizers hold it: example.com/hold"}
			}},
		{"foreign, hidden", "the watch does not show it: the create was refused", func(in *operator.Input) {
			in.Facts[0] = operator.Facts{Verdict: operator.Verdict{Foreign: "apps/web exists and is not ours"}}
		}},
		{"terminating and absent from the desired", "what goes is not deleted twice", func(in *operator.Input) {
			in.Facts[0].Live.Deleting = true
			in.Desired.Objects[0] = operator.DesiredObject{}
		}},
		{"an input is missing", "what cannot be known before it is there is left alone", func(in *operator.Input) {
			in.Desired.Objects[0] = operator.DesiredObject{Err: &operator.WaitingError{Message: "input x is missing"}}
		}},
		{"paused, forged", "what is not known to be ours is not recorded, even where nothing is done", func(in *operator.Input) {
			forged(in)
			in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
		}},
		{"marks stripped, unrecorded", "nothing says that it is ours",
			func(in *operator.Input) { unrecorded(in); in.Facts[0].Live.Owners = nil }},
	}
}

// previousWorlds are those of an object that has names, or a kind of mark, that the config has left.
func previousWorlds() []world {
	worlds := []world{
		{"previous names", "one write gives it the current names, whatever is done about drift; what was created once gets the marks alone",
			func(*operator.Input) {}},
		{"previous names, drifted", "likewise", func(in *operator.Input) { in.Facts[0].Live.P = other }},
		{"previous names, terminating", "it is going", func(in *operator.Input) { in.Facts[0].Live.Deleting = true }},
		{"previous names, not ours", "previous names do not make somebody else's object ours", func(in *operator.Input) {
			in.Facts[0].Live.Owners[0].UID, in.Facts[0].Live.Owners[0].Name = "up-2", "else"
			in.Facts[0].Trusted = false
		}},
		{"previous names, forged", "previous names do not make a mark ours", forged},
		{"previous names, from a crash", "the entry of the previous manager is ours as well", unrecorded},
		{"previous names, somebody puts it back", "two operators with each other's names would write forever",
			func(in *operator.Input) { in.Facts[0].Spaced = time.Second }},
	}
	worlds = startingWith(func(in *operator.Input) { in.Facts[0].Live.HasPreviousNames = true }, worlds)
	return append(worlds, []world{
		{"an annotation where a reference is wanted", "nothing would clean up once the finalizer is gone", func(in *operator.Input) {
			in.Facts[0].Live.Owners, in.Facts[0].Live.OwnerMark, in.Facts[0].Live.P = nil, "apps/web/"+string(upstreamUID), other
		}},
		{"an annotation beside the reference", "somebody else owns the annotation too: another apply would not help",
			func(in *operator.Input) { in.Facts[0].Live.OwnerMark = "apps/web/" + string(upstreamUID) }},
		{"a reference where the annotation is wanted", "the garbage collector would delete what must stay",
			func(in *operator.Input) { in.Facts[0].Live.P, in.Desired.Objects[0].Reference = other, false }},
		{"entries to adopt", "they go with the next apply and ask for none: who still writes would be fought",
			func(in *operator.Input) { in.Facts[0].Live.NeedsTakeover = true }},
	}...)
}

// observedWorlds are those of an object that the upstream asks for, and of some verdicts that mode Observe knows.
func observedWorlds() []world {
	some := []string{"in sync", "absent", "labels lost", "foreign", "forged", "deleted again and again", "another hash", "drift"}
	worlds := slices.DeleteFunc(targetWorlds(), func(w world) bool { return !slices.Contains(some, w.name) })
	return append(worlds, []world{
		{"another hash, compared", "the fields that would change are known", func(in *operator.Input) {
			in.Desired.Objects[0].Hash, in.Facts[0].Verdict.Differences = "v1-new", "would change .data.key"
		}},
		{"drift, refused as immutable", "a verdict from before the mode was changed",
			func(in *operator.Input) { in.Facts[0].Live.P, in.Facts[0].Verdict.Immutable = other, true }},
		{"marked by another writer, no hash", "it would be taken over, where that is allowed",
			func(in *operator.Input) { in.Facts[0] = operator.Facts{Live: ourLive()}; in.Facts[0].Live.Hash = "" }},
	}...)
}

// finalizerWorlds are those in which it matters whether the upstream has a finalizer.
func finalizerWorlds() []world {
	unwanted := func(in *operator.Input) { in.Desired.Objects[0], in.Facts[0].Live = operator.DesiredObject{}, nil }
	left := func(in *operator.Input) { in.Leftovers = []operator.Owned{{Live: ourLive(), Certain: true}} }
	return []world{
		{"in sync", "nothing else cleans up across namespaces; a finalizer that guards nothing only gets stuck", func(*operator.Input) {}},
		{"absent", "the finalizer comes before anything is made", func(in *operator.Input) { in.Facts[0].Live = nil }},
		{"conflict", "it makes nothing that needs one; each attempt would remove it and add it again",
			func(in *operator.Input) {
				in.Facts[0] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{UID: "x"}}}
			}},
		{"invalid", "existing objects are left alone, and so is what guards them", func(in *operator.Input) {
			in.Desired = &operator.Desired{Invalid: []string{""}, Objects: []operator.DesiredObject{{}}}
		}},
		{"invalid, only recorded", "what no watch shows may exist", func(in *operator.Input) {
			in.Desired = &operator.Desired{Invalid: []string{""}, Objects: []operator.DesiredObject{{}}}
			in.Facts[0] = operator.Facts{}
			in.Upstream.Object["status"] = map[string]any{"downstreams": status.RecordedList([]status.Recorded{
				{Name: "config", APIVersion: "v1", Kind: "ConfigMap", Namespace: "elsewhere", ObjectName: "web", UID: liveUID, State: "InSync"}})}
		}},
		{"not rendered", "a name says nothing of what exists", func(in *operator.Input) { in.Desired.Objects[0] = operator.DesiredObject{Err: errTest} }},
		{"not rendered, a leftover", "the garbage collector would delete what deletionPolicy keeps", func(in *operator.Input) {
			in.Desired.Objects[0].Err, in.Facts[0].Live = errTest, nil
			left(in)
		}},
		{"paused", "nothing is done, except for what the garbage collector would delete", func(in *operator.Input) {
			in.Upstream.SetAnnotations(map[string]string{"tools.example.com/paused": "true"})
		}},
		{"unwanted", "nothing is left to hold for", unwanted},
		{"unwanted, a leftover", "what exists is still held for", func(in *operator.Input) { unwanted(in); left(in) }},
		{"a leftover in another namespace", "it has no reference, and still needs the finalizer", func(in *operator.Input) {
			left(in)
			live := in.Leftovers[0].Live
			live.UID, live.Owners, live.OwnerMark = "live-0", nil, "apps/web/"+string(upstreamUID)
		}},
		{"unselected", "it goes with what it guarded", func(in *operator.Input) { in.Selected = false }},
	}
}

// leftoverWorlds are those of an object of ours that is at no target. Its successor is in sync unless the world says
// otherwise.
func leftoverWorlds() []world {
	foreign := func(in *operator.Input) {
		in.Facts[0] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{UID: "x"}, Projection: drift.Projection{Managed: true},
			Marks: drift.Marks{OwnerMark: "apps/other/up-2"}}}
	}
	old := func(in *operator.Input) {
		live := ourLive()
		live.Name, live.UID = "old", "live-0"
		in.Leftovers = []operator.Owned{{Live: live, Certain: true, Recorded: true}}
	}
	return startingWith(old, []world{
		{"the successor exists", "after a rename the old one goes", func(*operator.Input) {}},
		{"the successor is being created", "the old one serves until the new one exists", func(in *operator.Input) { in.Facts[0].Live = nil }},
		{"the successor is in conflict", "a failure takes nothing away",
			func(in *operator.Input) {
				in.Facts[0] = operator.Facts{Live: &drift.Live{Identity: drift.Identity{UID: "x"}}}
			}},
		{"another upstream has the name", "nothing is deleted for a name", foreign},
		{"the successor is deleted again and again", "a contested successor that does not exist takes nothing away",
			func(in *operator.Input) { in.Facts[0] = operator.Facts{Spaced: time.Second} }},
		{"invalid", "an invalid upstream takes nothing away",
			func(in *operator.Input) {
				in.Desired = &operator.Desired{Invalid: []string{""}, Objects: []operator.DesiredObject{{}}}
			}},
		{"not rendered", "a broken template takes nothing away",
			func(in *operator.Input) { in.Desired.Objects[0] = operator.DesiredObject{Err: errTest} }},
		{"an input is missing", "what exists is not superseded by something that nobody knows",
			func(in *operator.Input) {
				in.Desired.Objects[0] = operator.DesiredObject{Err: &operator.WaitingError{Message: "input is missing"}}
			}},
		{"unwanted", "when has become false", func(in *operator.Input) { in.Desired.Objects[0] = operator.DesiredObject{}; in.Facts[0].Live = nil }},
		{"unselected", "an upstream that lost the label is the same", func(in *operator.Input) { in.Selected = false }},
		{"terminating", "it is not deleted again", func(in *operator.Input) { in.Leftovers[0].Live.Deleting = true }},
		{"deleted again and again", "somebody keeps creating it", func(in *operator.Input) { in.Leftovers[0].Spaced = time.Second }},
	})
}

// deletionWorlds are those of an object of an upstream that is being deleted.
func deletionWorlds() []world {
	return startingWith(func(in *operator.Input) { *in = deleted() }, []world{
		{"owner reference", "the garbage collector deletes it, unless it is to be waited for or kept", func(*operator.Input) {}},
		{"owner annotation", "nobody else deletes it", func(in *operator.Input) {
			in.Leftovers[0].Live.Owners, in.Leftovers[0].Live.OwnerMark = nil, "apps/web/"+string(upstreamUID)
		}},
		{"terminating", "it is not deleted again", func(in *operator.Input) { in.Leftovers[0].Live.Deleting = true }},
		{"nothing left", "the upstream may go", func(in *operator.Input) { in.Leftovers = nil }},
		{"deleted again and again", "somebody keeps creating it", func(in *operator.Input) { in.Leftovers[0].Spaced = time.Second }},
	})
}
