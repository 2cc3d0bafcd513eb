package cases

import (
	"maps"
	"slices"

	"github.com/corollary-dev/corollary/pkg/config/query"
)

// The keys of a case file, by section.
var (
	fileKeys = []string{"apiVersion", "kind", "config", "crds", "operator", "upstream", "row",
		"inputs", "live", "namespaceLabels",
		"now", "expect"}
	liveKeys   = []string{"object", "applied", "objectName", "upstream", "changes", "by", "immutable"}
	expectKeys = []string{"errors", "invalid", "downstreams", "before", "leftovers", "finalizer",
		"conditions", "status", "writeBack"}
	downstreamKeys = []string{"objects", "state", "message", "document", "fields"}
	leftoverKeys   = []string{"downstream", "object", "state", "action", "message"}
	writeBackKeys  = []string{query.RowState, query.RowReady, query.RowReason, query.RowMessage}
	conditionKeys  = []string{"type", "status", "reason", "message", "observedGeneration"}
)

// liveEntry is one object that exists before the reconcile.
type liveEntry struct {
	line int
	// object is any object, as an API server would return it.
	object map[string]any
	// applied names a downstream: the object is the result of our last apply of it.
	applied string
	// objectName is the name of the object of a downstream with forEach.
	objectName string
	// upstream is what was different in the upstream at that time: a merge patch.
	upstream map[string]any
	// changes is what others have written since, including the status: a merge patch. by is their field manager.
	changes map[string]any
	by      string
	// immutable means that the API server refuses changes of what was applied.
	immutable bool
}

func (s section) liveEntry() liveEntry {
	s.checkKeys(liveKeys)
	e := liveEntry{
		line:       s.node.Line,
		object:     s.mapAt("object"),
		applied:    s.text("applied"),
		objectName: s.text("objectName"),
		upstream:   s.mapAt("upstream"),
		changes:    s.mapAt("changes"),
		by:         s.text("by"),
		immutable:  s.truth("immutable"),
	}
	switch {
	case (e.object == nil) == (e.applied == ""):
		s.problem(e.line, "%s: write either object, as the API server would return it, or applied, the downstream whose "+
			"last apply left it", s.at)
	case e.object != nil && (e.upstream != nil || e.changes != nil || e.by != ""):
		s.problem(e.line, "%s: upstream, changes and by go with applied: write the object as it is", s.at)
	}
	return e
}

// expectation checks the keys below expect.
func (s section) expectation() {
	s.checkKeys(expectKeys)
	s.texts("errors")
	s.texts("invalid")
	s.text("finalizer")
	s.mapAt("status")
	s.mapAt("writeBack")
	s.section("writeBack").checkKeys(writeBackKeys)
	downstreams := s.section("downstreams")
	for _, name := range slices.Sorted(maps.Keys(s.mapAt("downstreams"))) {
		downstreams.mapAt(name)
		downstreams.section(name).outcome()
	}
	s.mapAt("before")
	s.section("before").outcome()
	for _, l := range s.sections("leftovers") {
		l.checkKeys(leftoverKeys)
	}
	for _, l := range s.sections("conditions") {
		l.checkKeys(conditionKeys)
		if l.text("type") == "" {
			l.problem(l.node.Line, "%s.type is missing: it says which condition is meant", l.at)
		}
	}
}

// outcome checks the expectation for one object.
func (s section) outcome() {
	s.checkKeys(downstreamKeys)
	objects := s.section("objects")
	for _, name := range slices.Sorted(maps.Keys(s.mapAt("objects"))) {
		objects.mapAt(name)
		objects.section(name).outcome()
	}
	s.text("state")
	s.text("message")
	s.mapAt("document")
	s.mapAt("fields")
}
