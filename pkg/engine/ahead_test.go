package engine_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// An object that is no longer wanted before its watch has shown it is removed, too: its event is an echo of the create, after which nobody
// looks at it again.
func TestUnwantedAheadOfItsWatch(t *testing.T) {
	t.Parallel()
	const several, item = "    forEach: {items: self.spec.data}\n    # downstream\n", "item.key"
	for _, row := range []struct {
		reason   string
		change   []string // of widgetConfig
		spec     string
		unwanted string // the change of the upstream, as a merge patch
	}{
		{"it is disabled", []string{"    # downstream\n", "    when: self.spec.?replicas.orValue(1) > 0\n"},
			`{data: {key: a}}`, `{"spec": {"replicas": 0}}`},
		{"its item is gone", []string{"    # downstream\n", several, ".spec.name | default .metadata.name", item},
			`{data: {a: a}}`, `{"spec": {"data": {"a": null}}}`},
		{"its name changes", nil, `{data: {key: a}}`, `{"spec": {"name": "b"}}`},
		{"the upstream loses its label", []string{"namespaces: [NS]}", "namespaces: [NS], labelSelector: {matchLabels: {served: \"yes\"}}}"},
			`{data: {key: a}}`, `{"metadata": {"labels": null}}`},
		{"the upstream does not meet a condition", []string{"namespaces: [NS]}", "namespaces: [NS], " +
			"matchConditions: [{name: served, expression: \"self.metadata.?labels.served.orValue('no') == 'yes'\"}]}"},
			`{data: {key: a}}`, `{"metadata": {"labels": null}}`},
		{"the upstream of several loses its label", []string{
			"namespaces: [NS]}", "namespaces: [NS], labelSelector: {matchLabels: {served: \"yes\"}}}",
			"    # downstream\n", several, ".spec.name | default .metadata.name", item,
		}, `{data: {a: a}}`, `{"metadata": {"labels": null}}`},
	} {
		key, hasSeveral := "key", slices.Contains(row.change, several)
		if hasSeveral {
			key = "a"
		}
		for _, records := range []bool{true, false} { // whether the status records the object, which that of a Widget cannot of several
			if records && hasSeveral {
				continue
			}
			t.Run(row.reason+map[bool]string{true: "/recorded", false: "/not recorded"}[records], spaced(func(t *testing.T, ns, name string) {
				conf := widgetConfig
				if !records {
					conf = strings.Replace(conf, "  downstreams: .status.downstreams\n", "", 1)
				}
				conf = fill(strings.NewReplacer(row.change...).Replace(conf), ns, name)
				watch := &held{resource: "configmaps"}
				start(t, watch.wrap(testkit.Config(t)), conf).ready()
				release := watch.hold()
				testkit.Apply(t, ns, strings.Replace(widget("a", row.spec), "metadata: {", "metadata: {labels: {served: \"yes\"}, ", 1))
				waitData(t, ns, "a", key, "a")
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				testkit.Patch(t, widgets, ns, "a", "author", row.unwanted)
				waitGone(t, configMaps, ns, "a")
				release()
			}))
		}
	}
}

// The same for a row, of which no status says anything.
func TestGoneAheadOfItsWatch(t *testing.T) {
	t.Parallel()
	for reason, downstream := range map[string]string{"one object": "", "several objects": "    forEach: {items: '[self.row.name]'}\n"} {
		t.Run(reason, spaced(func(t *testing.T, ns, name string) {
			db := newDatabase(t)
			db.add(1, 3)
			watch := &held{resource: "configmaps"}
			start(t, watch.wrap(testkit.Config(t)), strings.Replace(db.config(ns, name), "    # downstream\n", downstream, 1)).ready()
			waitApps(t, ns, name, 1, 3)
			release := watch.hold()
			db.add(4, 6)
			waitApps(t, ns, name, 1, 6)
			db.exec("DELETE FROM apps WHERE id IN (3, 5)")
			waitGone(t, configMaps, ns, app(3), app(5))
			release()
			stayApps(t, ns, 6, 6)
		}))
	}
}

// held keeps back what watches of one resource bring, as long as a test wants it.
type held struct {
	resource string
	mu       sync.Mutex
	until    chan struct{} // nil while everything passes
}

// hold keeps back what comes from now on, until release is called.
func (h *held) hold() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := make(chan struct{})
	h.until = until
	return func() { close(until) }
}

func (h *held) wrap(cfg *rest.Config) *rest.Config {
	return intercepted(cfg, func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && request.URL.Query().Has("watch") && strings.HasSuffix(request.URL.Path, "/"+h.resource) {
			response.Body = &heldBody{ReadCloser: response.Body, held: h, ended: request.Context().Done()}
		}
		return response, err
	})
}

type heldBody struct {
	io.ReadCloser
	held  *held
	ended <-chan struct{}
}

func (b *heldBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.held.mu.Lock()
	until := b.held.until
	b.held.mu.Unlock()
	if until != nil {
		select {
		case <-until:
		case <-b.ended:
		}
	}
	return n, err
}

// TestUpstreamGoneAheadOfItsWatch: once the API server has said that an upstream is gone, nothing is made for it any more,
// though its watch is behind. The garbage collector would take it away each time.
func TestUpstreamGoneAheadOfItsWatch(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		watches, counter := &held{resource: "widgets"}, testkit.NewCounter()
		start(t, watches.wrap(counter.Wrap(testkit.Config(t))), fill(widgetConfig, ns, name)).ready()
		applyReady(t, ns, "a", "{data: {key: a}}")

		release := watches.hold()
		testkit.Delete(t, widgets, ns, "a")
		lookedFor := func() time.Time { // before the object is made again, the upstream is looked for
			for _, r := range counter.Requests() {
				if r.Key() == "LIST widgets" && strings.Contains(r.Query, "metadata.name") {
					return r.Sent
				}
			}
			return time.Time{}
		}
		// Time enough for what would be made again after a second.
		const enough = 5 * time.Second
		testkit.Eventually(t, patience, func() (bool, string) {
			at := lookedFor()
			return !at.IsZero() && time.Since(at) > enough, "no event says that the upstream is gone"
		})
		at := lookedFor()
		again := counter.Requests(testkit.Before(at.Add(enough)), func(r testkit.Request) bool { return r.Mutating() && r.Sent.After(at) })
		if len(again) > 0 {
			t.Errorf("there were %d writes for an upstream that is gone, such as %s", len(again), again[0].Key())
		}
		release()
		waitGone(t, configMaps, ns, "a")

		// The next one of that name is another one.
		testkit.Apply(t, ns, widget("a", "{data: {key: b}}"))
		waitData(t, ns, "a", "key", "b")
	})
}
