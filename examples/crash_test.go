package examples_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// edits are what happens in a sandbox of each example once everything has been created, one after the other.
var edits = map[string][]func(b *sandbox){
	"appoperator": {patching(tools("v1beta1", "appoperators"), "default", "shop", `{"spec":{"tag":"1.11"}}`)},
	"autoscaled":  {patching(platform("workers"), "default", "thumbnails", `{"spec":{"image":"other","maxReplicas":12}}`)},
	"backup":      {patching(platform("backups"), "default", "crontabs", `{"spec":{"schedule":"0 3 * * *","suspend":true}}`)},
	"blue-green": {
		patching(platform("bluegreens"), "default", "shop", `{"spec":{"image":"other"}}`),
		patching(platform("bluegreens"), "default", "shop", `{"spec":{"replicas":2}}`),
	},
	"bucket": {patching(platform("storages"), "default", "invoices", `{"spec":{"archive":"s3://other"}}`)},
	"certificates": {
		patching(ingresses, "default", "shop", `{"spec":{"tls":[{"secretName":"api-tls","hosts":["api.example.com","v2.example.com"]}]}}`),
		annotating(ingresses, "default", "shop", "platform.example.com/issuer", "internal"),
	},
	"chain": {patching(tools("v1", "websites"), "default", "bakery", `{"spec":{"title":"Bread","imprint":null}}`)},
	"configmap-copy": {
		patching(configMaps, "platform", "trusted-hosts", `{"data":{"strict":"false"}}`),
		patching(configMaps, "team-a", "trusted-hosts", `{"metadata":{"annotations":{"theirs":"x"}},"data":{"strict":"true","theirs":"x"}}`),
		annotating(configMaps, "platform", "trusted-hosts", "tools.example.com/copy-to", "team-a"),
	},
	"credentials": {patching(platform("credentials"), "default", "storefront", `{"spec":{"keys":["username"]}}`)},
	"database": {
		patching(platform("databases"), "default", "orders", `{"spec":{"user":"other"}}`),
		patching(platform("databases"), "default", "orders", `{"spec":{"image":"other"}}`),
	},
	"hello":       {patching(platform("webapps"), "default", "hello", `{"spec":{"image":"other","replicas":3}}`)},
	"staged":      {patching(platform("banners"), "default", "welcome", `{"spec":{"text":"Bye"}}`)},
	"indexed-job": {patching(platform("indexedjobs"), "default", "thumbnails", `{"spec":{"parallelism":3}}`)},
	"migration":   {patching(platform("migrations"), "default", "orders", `{"spec":{"image":"other"}}`)},
	"monitors": {
		patching(platform("monitors"), "default", "cart", `{"spec":{"url":"https://cart.example.com/other"}}`),
		patching(platform("monitors"), "default", "search", `{"spec":{"team":"checkout"}}`),
	},
	"namespace-default-deny": {
		patching(resourceQuotas, "team-a", "default", `{"metadata":{"annotations":{"theirs":"x"}},"spec":{"hard":{"pods":"500","services":"5"}}}`),
		patching(networkPolicies, "team-a", "default-deny", `{"metadata":{"annotations":{"theirs":"x"}},"spec":{"ingress":[{}]}}`),
	},
	"network-stack": {
		patching(platform("networks"), "default", "shop", `{"spec":{"subnets":{"eu-1a":null,"eu-2a":"10.0.192.0/18"}}}`),
		patching(platform("networks"), "default", "shop", `{"spec":{"cidr":"10.0.0.0/12"}}`),
	},
	"pull-secret": {
		patching(secrets, "platform", "registry-pull", `{"data":{".dockerconfigjson":"e30="}}`),
		func(b *sandbox) {
			testkit.Delete(b.t, secrets, b.names["platform"], "registry-pull")
			testkit.Apply(b.t, b.names["platform"], `{apiVersion: v1, kind: Secret, metadata: {name: registry-pull}, type: Opaque, data: {login: e30=}}`)
		},
	},
	"rollout": {patching(configMaps, "default", "edge-settings", `{"data":{"proxy.conf":"listen 80;"}}`)},
	"scheduled-job": {
		patching(platform("scheduledjobs"), "default", "report", `{"spec":{"overlays":{"staging":null,"demo":{"suspend":true}}}}`),
		patching(platform("scheduledjobs"), "default", "report", `{"spec":{"base":{"image":"other"}}}`),
	},
	"secret-replicate": {
		patching(secrets, "platform", "wildcard-tls", `{"data":{"tls.key":"bmV3"}}`),
		patching(secrets, "review-1", "wildcard-tls", `{"metadata":{"annotations":{"theirs":"x"}},"data":{"tls.key":"b2xk","theirs":"eA=="}}`),
		annotating(secrets, "platform", "wildcard-tls", "platform.example.com/replicate-to", "review-2,review-3"),
	},
	"service-per-pod": {
		patching(statefulSets, "default", "kafka", `{"spec":{"replicas":2}}`),
		annotating(statefulSets, "default", "kafka", "platform.example.com/service-per-pod", "9093:9093"),
	},
	"team": {
		patching(platform("teams"), "", "checkout", `{"spec":{"group":"engineers"}}`),
		patching(platform("teams"), "", "checkout", `{"spec":{"stages":{"dev":"edit"}}}`),
	},
	"team-settings": {
		patching(configMaps, "default", "checkout-limits", `{"data":{"MAX_ITEMS":"60"}}`),
		patching(configMaps, "default", "search-limits", `{"metadata":{"labels":{"platform.example.com/team":"checkout"}}}`),
	},
	"tenant": {patching(platform("tenants"), "", "bakery", `{"spec":{"pods":10,"users":[{"name":"alice@example.com","role":"view"},{"name":"carol@example.com"}]}}`)},
	"webapp": {
		patching(tools("v1", "webapps"), "default", "storefront", `{"spec":{"host":null,"replicas":3}}`),
		patching(tools("v1", "webapps"), "default", "backend", `{"spec":{"host":"backend.example.com"}}`),
	},
	"workers": {
		patching(platform("workerpools"), "default", "shop", `{"spec":{"workers":[{"name":"exports"},{"name":"mail","replicas":2}]}}`),
		patching(platform("workerpools"), "default", "shop", `{"spec":{"image":"other"}}`),
	},
}

// tools is a resource of the other group that the examples' own kinds are in.
func tools(version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tools.example.com", Version: version, Resource: resource}
}

// patching is a change by someone; names are those of the example.
func patching(gvr schema.GroupVersionResource, namespace, name, json string) func(*sandbox) {
	return func(b *sandbox) {
		testkit.Patch(b.t, gvr, b.names[namespace], b.nameOf(namespace, name), "somebody", json)
	}
}

// annotating is a change of an annotation whose value may have names of the example.
func annotating(gvr schema.GroupVersionResource, namespace, name, key, value string) func(*sandbox) {
	return func(b *sandbox) {
		patching(gvr, namespace, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, b.words(value)))(b)
	}
}

// steps are an example's whole story: everything is created, edited and deleted.
func (b *sandbox) steps() []func(*sandbox) {
	b.t.Helper()
	if len(edits[b.name()]) == 0 {
		b.t.Fatalf("the example %s has no edits: write in edits what happens to it", b.name())
	}
	return slices.Concat([]func(*sandbox){(*sandbox).create}, edits[b.name()], []func(*sandbox){(*sandbox).delete})
}

func (b *sandbox) create() {
	for _, u := range b.documents("inputs.yaml") {
		b.apply(u, map[string]string{})
	}
	for _, u := range b.documents("cr.yaml") {
		b.apply(u, map[string]string{sandboxLabel: b.id})
	}
}

// delete deletes the upstreams.
func (b *sandbox) delete() {
	for _, u := range b.documents("cr.yaml") {
		k := must.Get(b.cluster.Kind(u.GroupVersionKind())).In(b.t)
		testkit.Delete(b.t, k.GVR, b.names[u.GetNamespace()], b.nameOf(u.GetNamespace(), u.GetName()))
	}
}

// course is what a story comes to: how the objects are after each step, and how often each object has been created.
// Until the news of its upstream's deletion has arrived, what the garbage collector takes may be made again
// (engine.Options.AfterDelete); so what is gone after a step counts as often as it was created before.
type course struct {
	pictures []string
	created  map[string]int
	before   map[string]int // the last step
}

// count counts how often a client has created each object, once after each step.
func (c *course) count(b *sandbox, counter *testkit.Counter) {
	created := map[string]int{}
	theirs := b.replacer()
	gone := maps.Clone(c.created)
	for _, u := range b.objects() {
		k := must.Get(b.cluster.Kind(u.GroupVersionKind())).In(b.t)
		delete(gone, theirs.Replace(k.GVR.Resource+" "+u.GetNamespace()+"/"+u.GetName()))
	}
	for _, r := range counter.Requests(testkit.Request.Mutating) {
		if r.Code == http.StatusCreated && r.Group != "events.k8s.io" {
			created[theirs.Replace(r.Resource+" "+r.Namespace+"/"+r.Name)]++
		}
	}
	maps.Copy(created, gone)
	c.created = created
}

// undisturbed runs an example's story without a fault.
func (b *sandbox) undisturbed(strike *testkit.Strike) *course {
	b.t.Helper()
	o := &operator{Counter: testkit.NewCounter(), t: b.t}
	life := strike.Run(b.t, o.Wrap(testkit.Config(b.t)), b.start)
	c := &course{}
	steps := b.steps()
	for i, step := range steps {
		step(b)
		b.waitReady(i == 0, i == len(steps)-1)
		o.idle()
		c.pictures = append(c.pictures, b.picture())
		if c.count(b, o.Counter); i == len(steps)-2 {
			c.before = c.created
		}
	}
	life.Stop()
	return c
}

// waitReady waits until all that is wanted is there and ready, after the first step and the last all of it and nothing.
func (b *sandbox) waitReady(first, last bool) {
	b.t.Helper()
	testkit.Eventually(b.t, patience, func() (bool, string) {
		n, why := b.managed(), b.unready()
		switch {
		case first && n < b.least:
			return false, "not everything has been created"
		case last && n > 0:
			return false, "not everything has been deleted:\n" + b.picture()
		}
		return why == "", why
	})
}

// disturbed runs the story with a fault: it takes the same course.
func (b *sandbox) disturbed(strike *testkit.Strike, want *course) {
	b.t.Helper()
	counter := testkit.NewCounter()
	life := strike.Run(b.t, counter.Wrap(testkit.Config(b.t)), b.start)
	var c course
	for i, step := range b.steps() {
		step(b)
		var have string
		b.t.Cleanup(func() {
			if b.t.Failed() && have != want.pictures[i] {
				b.t.Logf("after step %d:\n%s", i, cmp.Diff(strings.Split(want.pictures[i], "\n"), strings.Split(have, "\n")))
			}
		})
		life.Eventually(patience, func() (bool, string) {
			have = b.picture()
			return have == want.pictures[i], fmt.Sprintf("step %d did not end as undisturbed", i)
		})
		if i == len(want.pictures)-2 { // the last answer may not have been counted yet
			life.Eventually(patience, func() (bool, string) {
				c.count(b, counter)
				return maps.Equal(c.created, want.before), "what was created differs from an undisturbed story:\n" + cmp.Diff(want.before, c.created)
			})
		} else {
			c.count(b, counter)
		}
	}
	life.Stop()
	must.Same(b.t, want.created, c.created, "what was created, and how often, differs from an undisturbed story")
}

// alone runs a test with an example's sandbox on an API server of its own.
func (e example) alone(t *testing.T, test func(b *sandbox)) {
	t.Helper()
	bubble.Test(t, e.crds(), func(t *testing.T) {
		test(newStage(t, everybody(t), e).sandbox(t, e))
	})
}

// TestExamplesStricken runs the story of each example once for each write of its operators, which are killed right
// before or after it and started again. All ends as if nothing had happened, and nothing is created twice.
func TestExamplesStricken(t *testing.T) {
	t.Parallel()
	for _, e := range examples(t) {
		t.Run(e.name(), func(t *testing.T) {
			t.Parallel()
			var want *course
			testkit.EachWrite(t, testkit.Deaths, func(t *testing.T, strike *testkit.Strike) {
				e.alone(t, func(b *sandbox) {
					if want == nil {
						want = b.undisturbed(strike)
						return
					}
					b.disturbed(strike, want)
				})
			})
		})
	}
}

// TestExamplesRestart: a restart over objects in sync asks the API server nothing about any of them, and writes
// nothing.
func TestExamplesRestart(t *testing.T) {
	t.Parallel()
	for _, e := range examples(t) {
		t.Run(e.name(), func(t *testing.T) {
			t.Parallel()
			e.alone(t, (*sandbox).restarts)
		})
	}
}

func (b *sandbox) restarts() {
	o, stop := b.runUntilIdle()
	steps := b.steps()
	for i, step := range steps {
		step(b)
		b.waitReady(i == 0, i == len(steps)-1)
		o.idle()
		stop()
		o, stop = b.runUntilIdle()
		if asked := o.Requests(aboutObjects); len(asked) > 0 {
			b.t.Errorf("after step %d a restart costs %v", i, asked)
		}
	}
	stop()
}

// runUntilIdle runs the example's operators until they have nothing more to do, and counts their requests.
func (b *sandbox) runUntilIdle() (o *operator, stop func()) {
	b.t.Helper()
	o = &operator{Counter: testkit.NewCounter(), t: b.t}
	e, stop := launch(b.t, o.Wrap(testkit.Config(b.t)), b.load())
	awaitReady(b.t, e)
	o.idle()
	return o, stop
}

// aboutObjects is a condition for requests about single objects.
func aboutObjects(r testkit.Request) bool {
	return r.Name != "" && r.Verb != "LIST" && r.Verb != "WATCH" && r.Group != "events.k8s.io"
}
