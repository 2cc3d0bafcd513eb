//go:build controlplane

package examples_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestPullSecret: every labeled Namespace has what the original has, byte for byte.
func TestPullSecret(t *testing.T) {
	t.Parallel()
	label := func(ns, value string) {
		testkit.Patch(t, namespaces, "", ns, "somebody", `{"metadata":{"labels":{"platform.example.com/pull-secret":`+value+`}}}`)
	}
	original := func(kind string, data map[string]any) fields {
		u := testkit.Parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: registry-pull}}")
		u.Object["type"], u.Object["data"] = kind, data
		testkit.Apply(t, "platform", marshal(t, u))
		return fields{".type": kind, ".data": data}
	}
	testkit.Apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: platform}}")
	testkit.Delete(t, secrets, "platform", "registry-pull")
	first, second, other := testkit.Namespace(t), testkit.Namespace(t), testkit.Namespace(t)
	label(first, `"true"`)
	label("platform", `"true"`)
	o := runExample(t, "pull-secret")
	awaitState(t, "pull-secret", "copy", "Waiting")
	o.idle()
	if testkit.Find(t, secrets, first, "registry-pull") != nil {
		t.Error("a copy stands without an original")
	}

	var every []byte
	for i := range 256 {
		every = append(every, byte(i))
	}
	login := base64.StdEncoding.EncodeToString([]byte(`{"auths":{}}`))
	content := original("kubernetes.io/dockerconfigjson", map[string]any{".dockerconfigjson": login, "every.byte": base64.StdEncoding.EncodeToString(every), "empty": ""})
	await(t, secrets, first, "registry-pull", content)
	label(second, `"true"`)
	await(t, secrets, second, "registry-pull", content)

	login = base64.StdEncoding.EncodeToString([]byte(`{"auths":{"registry.example.com":{}}}`))
	content = original("kubernetes.io/dockerconfigjson", map[string]any{".dockerconfigjson": login})
	await(t, secrets, first, "registry-pull", content)
	await(t, secrets, second, "registry-pull", content)
	testkit.Patch(t, secrets, first, "registry-pull", "somebody", `{"data":{".dockerconfigjson":"e30=","theirs":"eA=="}}`)
	await(t, secrets, first, "registry-pull", content)

	label(second, `"false"`)
	gone(t, secrets, second, "registry-pull")
	testkit.Delete(t, secrets, "platform", "registry-pull")
	awaitState(t, "pull-secret", "copy", "Waiting")
	o.idle()
	await(t, secrets, first, "registry-pull", content)
	if testkit.Find(t, secrets, other, "registry-pull") != nil {
		t.Error("a Namespace without the label has a copy")
	}

	content = original("Opaque", map[string]any{"login": login})
	await(t, secrets, first, "registry-pull", content)
	o.idle()
	if n := o.writes("secrets", "platform"); n > 0 {
		t.Errorf("the original was written %d times", n)
	}
	o.halt()
	content = original("Opaque", map[string]any{"login": "bmV3"})
	runExample(t, "pull-secret")
	await(t, secrets, first, "registry-pull", content)
	testkit.Delete(t, secrets, "platform", "registry-pull") // its type would be in the way of a second run
}

// TestMonitors: one ConfigMap has all Monitors of a team, and follows them.
func TestMonitors(t *testing.T) {
	t.Parallel()
	ns, scrapers := testkit.Namespace(t), platform("scrapers")
	o := runExample(t, "monitors")
	state(t, ns, "monitors")
	collected := func(count int64, targets string) {
		t.Helper()
		await(t, configMaps, ns, "checkout-targets", fields{".data['targets.yaml']": targets})
		await(t, scrapers, ns, "checkout", fields{".status.monitors": count})
	}
	entry := func(name, url, interval string) string {
		return fmt.Sprintf("- url: %q\n  interval: %q\n  labels: {monitor: %q}\n", url, interval, name)
	}
	monitor := func(name, team, url string) {
		testkit.Apply(t, ns, fmt.Sprintf(`{apiVersion: platform.example.com/v1, kind: Monitor, spec: {team: %s, url: %q},
			metadata: {name: %s, labels: {platform.example.com/scrape: "true"}}}`, team, url, name))
	}
	collected(0, "# 0 monitors\n")
	await(t, scrapers, ns, "checkout", ready("True", "Ready", ""))
	monitor("shop", "checkout", "https://shop")
	monitor("cart", "checkout", "a\n- url: b") // stays one entry
	both := entry("cart", "a\n- url: b", "30s") + entry("shop", "https://shop", "30s")
	collected(2, "# 2 monitors\n"+both)

	o.idle()
	o.Reset()
	monitor("search", "search", "https://search")
	testkit.Patch(t, platform("monitors"), ns, "shop", "somebody", `{"metadata":{"annotations":{"a":"b"}}}`)
	o.idle()
	here := func(r testkit.Request) bool { return r.Namespace == ns } // what the tests before have left is worked on, too
	if o.Total(here) > 0 {
		t.Errorf("Monitors of others, and fields that nobody reads, took requests: %v", o.Requests(here))
	}
	monitor("search", "checkout", "https://search")
	collected(3, "# 3 monitors\n"+entry("cart", "a\n- url: b", "30s")+entry("search", "https://search", "30s")+entry("shop", "https://shop", "30s"))
	testkit.Delete(t, platform("monitors"), ns, "search")
	collected(2, "# 2 monitors\n"+both)
}

// TestTeamSettings: a Deployment has all ConfigMaps of its team, and rolls out with them.
func TestTeamSettings(t *testing.T) {
	t.Parallel()
	ns, backends := testkit.Namespace(t), platform("backends")
	o := runExample(t, "team-settings")
	settings := func(name, team, value string) {
		testkit.Apply(t, ns, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, data: {KEY: %q},
			metadata: {name: %s, labels: {platform.example.com/team: %s}}}`, value, name, team))
	}
	digest, from := ".spec.template.metadata.annotations['platform.example.com/settings']", ".spec.template.spec.containers[name=backend].envFrom"
	last := any(nil)
	has := func(names ...any) {
		t.Helper()
		want := any(nil)
		for i, name := range names {
			names[i], want = map[string]any{"configMapRef": map[string]any{"name": name}}, names
		}
		testkit.Eventually(t, patience, func() (bool, string) {
			d := testkit.Get(t, deployments, ns, "cart")
			next := at(d, digest)
			why := fields{from: want}.missing(d)
			if why == "" && next != last {
				last = next
				return true, ""
			}
			return false, "the Deployment has not rolled out: " + why
		})
		await(t, backends, ns, "cart", fields{".status.settings": int64(len(names))})
	}
	settings("limits", "checkout", "1")
	state(t, ns, "team-settings")
	await(t, deployments, ns, "cart", fields{})
	has("limits")
	settings("endpoints", "checkout", "1")
	has("endpoints", "limits")
	settings("limits", "checkout", "2")
	has("endpoints", "limits")

	o.idle()
	o.Reset()
	settings("others", "search", "1")
	testkit.Patch(t, configMaps, ns, "limits", "somebody", `{"metadata":{"annotations":{"a":"b"}}}`)
	o.idle()
	if here := func(r testkit.Request) bool { return r.Namespace == ns }; o.Total(here) > 0 {
		t.Errorf("what the Deployment does not read took requests: %v", o.Requests(here))
	}
	settings("others", "checkout", "1")
	has("endpoints", "limits", "others")
	testkit.Delete(t, configMaps, ns, "endpoints")
	has("limits", "others")
	testkit.Delete(t, configMaps, ns, "limits")
	testkit.Delete(t, configMaps, ns, "others")
	has()
}

// TestSecretReplicate: a Secret is in the namespaces that its annotation names and that exist, and in no other.
func TestSecretReplicate(t *testing.T) {
	t.Parallel()
	home, first, other := testkit.Namespace(t), testkit.Namespace(t), testkit.Namespace(t)
	prefix := testkit.Unique(t) + "-"
	runExample(t, "secret-replicate")
	to := func(names string) {
		testkit.Patch(t, secrets, home, "tls", "somebody", fmt.Sprintf(`{"metadata":{"annotations":{"platform.example.com/replicate-to":%q}}}`, names))
	}
	content := fields{".type": "Opaque", ".data": map[string]any{"key": "YQ=="}}
	testkit.Apply(t, home, "{apiVersion: v1, kind: Secret, metadata: {name: tls}, data: {key: YQ==}}")
	testkit.Apply(t, other, "{apiVersion: v1, kind: Secret, metadata: {name: tls}, data: {theirs: eA==}}")
	to(first + ", nowhere, " + prefix + "*, " + home)
	await(t, secrets, first, "tls", content)
	late := prefix + "late"
	testkit.Apply(t, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+late+"}}") // comes later, and is named by its prefix
	await(t, secrets, late, "tls", content)

	testkit.Patch(t, secrets, first, "tls", "somebody", `{"data":{"key":"Yg==","theirs":"eA=="}}`)
	await(t, secrets, first, "tls", content)
	testkit.Patch(t, secrets, home, "tls", "somebody", `{"data":{"key":"Yw=="}}`)
	content = fields{".data": map[string]any{"key": "Yw=="}}
	await(t, secrets, first, "tls", content)
	await(t, secrets, late, "tls", content)

	testkit.Apply(t, home, `{apiVersion: v1, kind: Secret, metadata: {name: bootstrap-token-abcdef, annotations: {platform.example.com/replicate-to: "`+first+`"}},
		type: bootstrap.kubernetes.io/token, data: {token-id: YWJjZGVm, token-secret: MDEyMzQ1Njc4OWFiY2RlZg==}}`)
	to(late + ", kube-*")
	gone(t, secrets, first, "tls")
	for ns, name := range map[string]string{"kube-system": "tls", first: "bootstrap-token-abcdef"} { // had they been wanted, they would be there
		if _, err := testkit.Dynamic(t).Resource(secrets).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s is copied to %s: %v", name, ns, err)
		}
	}
	to(late + "," + other) // where someone else has a Secret of this name
	awaitState(t, "secret-replicate", "copy", "Conflict")
	await(t, secrets, other, "tls", fields{".data": map[string]any{"theirs": "eA=="}})
	await(t, secrets, late, "tls", content)

	testkit.Delete(t, namespaces, "", late)
	gone(t, namespaces, "", late)
	to(first)
	await(t, secrets, first, "tls", content)
	testkit.Delete(t, secrets, home, "tls")
	gone(t, secrets, first, "tls")
	gone(t, secrets, home, "tls")
	await(t, secrets, other, "tls", fields{".data": map[string]any{"theirs": "eA=="}})
}

// TestRollout: other settings are another rollout, and missing ones change nothing.
func TestRollout(t *testing.T) {
	t.Parallel()
	ns, proxies := testkit.Namespace(t), platform("proxies")
	o := runExample(t, "rollout")
	state(t, ns, "rollout")
	await(t, proxies, ns, "edge", ready("False", "Waiting", "deployment: input settings: ConfigMap "+ns+"/edge-settings does not exist"))
	o.idle()
	if testkit.Find(t, deployments, ns, "edge") != nil {
		t.Error("a Deployment stands though its settings are missing")
	}

	templates := map[string]bool{}
	rolled := func() {
		t.Helper()
		before := len(templates)
		testkit.Eventually(t, patience, func() (bool, string) {
			for _, rs := range testkit.List(t, replicaSets, ns, "") {
				templates[rs.GetLabels()["pod-template-hash"]] = true
			}
			return len(templates) > before, "there is no new ReplicaSet"
		})
		rollOut(t, ns, "edge")
		await(t, proxies, ns, "edge", ready("True", "Ready", ""))
	}
	settings := func(content string) {
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: edge-settings}, "+content+"}")
	}
	settings("data: {a: '1'}")
	rolled()
	settings("data: {a: '2'}")
	rolled()
	settings("data: {a: '2'}, binaryData: {b: AAEC}")
	rolled()

	o.idle() // what the last rollout asked for, events included, has been sent
	o.Reset()
	testkit.Patch(t, configMaps, ns, "edge-settings", "somebody", `{"metadata":{"annotations":{"a":"b"}}}`)
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: others}, data: {a: '3'}}")
	o.idle()
	here := func(r testkit.Request) bool { return r.Namespace == ns } // what the tests before have left is worked on, too
	if o.Total(here) > 0 {
		t.Errorf("what the template does not read took requests: %v", o.Requests(here))
	}
	before := at(testkit.Get(t, deployments, ns, "edge"), ".spec")
	testkit.Delete(t, configMaps, ns, "edge-settings")
	await(t, proxies, ns, "edge", ready("False", "Waiting", "deployment: input settings: ConfigMap "+ns+"/edge-settings does not exist"))
	o.idle()
	await(t, deployments, ns, "edge", fields{".spec": before, ".metadata.deletionTimestamp": nil})

	settings("data: {a: '4'}")
	rolled()
	testkit.Patch(t, proxies, ns, "edge", "somebody", `{"spec":{"settings":"others"}}`)
	rolled()
	testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: others}, data: {a: '5'}}")
	rolled()
	if n := len(templates); n != 6 {
		t.Errorf("6 contents took %d rollouts: %v", n, slices.Collect(maps.Keys(templates)))
	}
}
