package engine_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	recording "k8s.io/client-go/tools/events"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// Every event whose text is long comes through, cut between two characters wherever the limit falls.
func TestLongEvents(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		client, err := kubernetes.NewForConfig(testkit.Config(t))
		if err != nil {
			t.Fatal(err)
		}
		broadcaster := recording.NewBroadcaster(&recording.EventSinkImpl{Interface: client.EventsV1()})
		if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broadcaster.Shutdown)
		recorder := engine.Recorder{EventRecorder: broadcaster.NewRecorder(scheme.Scheme, "test")}
		up := testkit.Apply(t, ns, widget("a", "{}"))
		notes := map[string]string{"short": "x", "exact": strings.Repeat("x", 1024), "invalid": strings.Repeat("x\xff", 5<<10)}
		for i, r := range map[string]string{"One": "x", "Two": "é", "Three": "…", "Four": "\U0001F600"} {
			for shift := range 4 {
				notes[i+strings.Repeat("I", shift)] = strings.Repeat("x", shift) + strings.Repeat(r, 10<<10)
			}
		}
		for reason, note := range notes {
			recorder.Eventf(up, nil, "Warning", reason, "Test", "%s", note)
		}
		for reason := range notes {
			waitEvent(t, ns, "a", reason, "")
		}
		for _, e := range testkit.List(t, events, ns, "") {
			note, _, _ := unstructured.NestedString(e.Object, "note")
			reason, _, _ := unstructured.NestedString(e.Object, "reason")
			if len(note) > 1024 || !utf8.ValidString(note) || len(notes[reason]) > 1024 && (len(note) < 1017 || !strings.HasSuffix(note, "…")) {
				t.Errorf("the note of %s has %d bytes and ends in %q", reason, len(note), note[max(0, len(note)-8):])
			}
		}
	})
}

// A rule's message of 2,048 bytes and an error of a template of 10,000 are told by events.
func TestLongMessagesAreEvents(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := strings.Replace(fill(widgetConfig, ns, name), "events: None", "events: All", 1)
		conf = strings.Replace(conf, "downstreams:\n", `validate: [{rule: "self.spec.?name.orValue('') != 'bad'", messageExpression: self.spec.data.text, message: short}]`+"\ndownstreams:\n", 1)
		conf = strings.Replace(conf, "data: {{ .spec.data }}", "data: {x: {{ fail .spec.data.text }}}", 1)
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, widget("invalid", "{name: bad, data: {text: "+strings.Repeat("é", 1020)+"}}"))
		testkit.Apply(t, ns, widget("failing", "{data: {text: "+strings.Repeat("é", 5000)+"}}"))
		waitEvent(t, ns, "invalid", "Invalid", "éé")
		waitEvent(t, ns, "failing", "RenderFailed", "éé")
	})
}

// No event goes past the recorder that cuts texts.
func TestEventsHaveOneRecorder(t *testing.T) {
	made := regexp.MustCompile(`\.(GetEventRecorder|NewRecorder)\(`)
	cuts := regexp.MustCompile(`(Recorder\{|EventRecorder: )[\w.()*]+\.(GetEventRecorder|NewRecorder)\(`)
	recorders := 0
	for _, dir := range []string{".", "../cli"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			n := len(made.FindAll(text, -1))
			if recorders += n; !strings.HasSuffix(path, "_test.go") && n != len(cuts.FindAll(text, -1)) {
				t.Errorf("%s makes a recorder that does not cut texts", path)
			}
		}
	}
	if recorders == 0 {
		t.Error("no recorder is made")
	}
}
