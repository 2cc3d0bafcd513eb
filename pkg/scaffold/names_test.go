package scaffold

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/manifest"
)

func TestCommonName(t *testing.T) {
	for _, test := range []struct{ manifests, want, reason string }{
		{"metadata: {name: web}", "web", "the name of the only one"},
		{"metadata: {name: web}\n---\nmetadata: {name: web-config}", "web", "what both begin with"},
		{"metadata: {name: web-api}\n---\nmetadata: {name: web-db}", "web", "that none is called so does not matter"},
		{"metadata: {name: web}\n---\nmetadata: {name: website}", "web", "a word is not the beginning of another: the first one's"},
		{"metadata: {name: front}\n---\nmetadata: {name: back}", "front", "nothing in common: the first one's"},
		{"metadata: {name: nginx-deployment}\nspec: {selector: {matchLabels: {app: nginx}}}", "nginx", "the selector names the beginning"},
		{"metadata: {name: web}\nspec: {selector: {app: other}}", "web", "the selector names something else"},
		{"metadata: {name: website}\nspec: {selector: {app: web}}", "website", "the selector's is no word of it"},
	} {
		must.Same(t, test.want, commonName(manifestsFrom(t, test.manifests)), test.reason)
	}
}

// manifestsFrom reads manifests that lack apiVersion and kind.
func manifestsFrom(t *testing.T, text string) []*source {
	t.Helper()
	var manifests []*source
	for document := range strings.SplitSeq(text, "\n---\n") {
		found := must.Get(manifestsOf(manifest.Document{Text: []byte("apiVersion: v1\nkind: Service\n" + document)})).In(t)
		manifests = append(manifests, found...)
	}
	return manifests
}

func TestReplaceName(t *testing.T) {
	n := &naming{base: "web", mark: "X"}
	for _, test := range []struct{ text, want, reason string }{
		{"web", "X", "the whole"},
		{"web-config", "X-config", "the beginning"},
		{"my-web", "my-X", "the end"},
		{"web.web-web", "X.X-X", "more than once"},
		{"website", "website", "part of a word"},
		{"cobweb", "cobweb", "the end of a word"},
		{"webweb", "webweb", "twice, and yet one word"},
		{"webweb-web", "webweb-X", "behind such a word"},
		{"web2", "web2", "a number belongs to the word"},
		{"", "", "nothing"},
	} {
		if got, found := n.replace(test.text); got != test.want || found != (got != test.text) {
			t.Errorf("%s: %q gives %q (%t), want %q", test.reason, test.text, got, found, test.want)
		}
	}
}

func TestNameDownstreams(t *testing.T) {
	kinds := []string{"ConfigMap", "Namespace", "CSIDriver", "ConfigMap", "API", "ConfigMap", "Route53", "Route53"}
	var manifests []*source
	for _, kind := range kinds {
		manifests = append(manifests, &source{kind: schema.GroupVersionKind{Version: "v1", Kind: kind}})
	}
	nameDownstreams(manifests, "Team")
	for i, want := range []string{"configMap", "teamNamespace", "csiDriver", "configMap2", "api", "configMap3", "route53", "route532"} {
		must.Same(t, want, manifests[i].downstream, kinds[i], "is called")
	}
}
