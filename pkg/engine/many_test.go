package engine_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// paths counts requests by path.
type paths struct {
	http.RoundTripper
	mu    *sync.Mutex
	count map[string]int
}

// RoundTrip implements http.RoundTripper.
func (p paths) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.count[r.URL.Path]++
	p.mu.Unlock()
	return p.RoundTripper.RoundTrip(r)
}

func (p paths) snapshot() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.count)
}

func counting(cfg *rest.Config) (*rest.Config, paths) {
	p := paths{mu: &sync.Mutex{}, count: map[string]int{}}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return paths{next, p.mu, p.count} })
	return cfg, p
}

// Operators that start together look up the kinds of one group and version once. Those of a reload do so again, since kinds often
// change together with configs, and those of an unchanged config not at all.
func TestOperatorsShareDiscovery(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		const many = 12
		ns := testkit.Namespace(t)
		var configs []string
		for i := range many {
			text := fill(widgetConfig, ns, testkit.Unique(t))
			// Operators on one kind must write different conditions.
			text = strings.NewReplacer("ready: Ready, valid: Valid, reconciling: Reconciling, stalled: Stalled", fmt.Sprintf("ready: Ready%d", i),
				"  downstreams: .status.downstreams\n", "", "{{ .spec.name | default .metadata.name }}", fmt.Sprintf("{{ .metadata.name }}-%d", i)).Replace(text)
			if i%2 == 0 {
				text = strings.Replace(text, "kind: Widget", "kind: Gadget", 1)
			}
			configs = append(configs, text)
		}
		cfg, requests := counting(testkit.Config(t))
		r := start(t, cfg, configs...).ready()
		lookUps := func() map[string]int {
			found := requests.snapshot()
			maps.DeleteFunc(found, func(path string, _ int) bool {
				return path != "/version" && path != "/api/v1" && path != "/apis/test.example.com/v1" && !strings.HasPrefix(path, "/openapi/")
			})
			return found
		}
		began := lookUps()
		for path, n := range began {
			if n > many/3 {
				t.Errorf("%d requests for %s by %d operators", n, path, many)
			}
		}
		r.reload()
		never(t, func() (bool, string) {
			return !maps.Equal(began, lookUps()), fmt.Sprintf("requests of a reload of equal configs: %v, %v before", lookUps(), began)
		})
		r.reloadTo(withKey(configs[0], "version", "two"))
		testkit.Eventually(t, patience, func() (bool, string) {
			n := lookUps()["/apis/test.example.com/v1"]
			return n > began["/apis/test.example.com/v1"], "the kinds of the changed config are not requested again"
		})
	})
}

// An operator at rest has one goroutine for its queue, however many workers it may have.
func TestOperatorAtRestHasNoWorkers(t *testing.T) {
	inTurn(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
		startMade(t, ns, fill(widgetConfig, ns, name))
		testkit.Eventually(t, patience, func() (bool, string) {
			var stacks bytes.Buffer
			if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
				t.Fatal(err)
			}
			n := 0
			for stack := range strings.SplitSeq(stacks.String(), "\n\n") {
				running, _, _ := strings.Cut(stack, "created by")
				if strings.Contains(running, ".GetWithPriority(") || strings.Contains(running, ".runWorker(") {
					n++
				}
			}
			return n == 1, fmt.Sprintf("%d goroutines wait for upstreams or reconcile, want 1 of %d workers", n, workers)
		})
	})
}
