package sim_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// passwords returns the generated values of each upstream, by the place of their Secrets; "" for a Secret that lacks
// its own. It returns nil for a request that changes no Secret.
func (w *world) passwords(request *http.Request) map[string]map[string]string {
	if !w.Setup.Generated || w.Setup.Several || request.Method == http.MethodGet || request.URL.Query().Get("dryRun") != "" ||
		!strings.Contains(request.URL.Path, "/secrets/") {
		return nil
	}
	p := w.pipelines()[0].Pipeline
	found := map[string]map[string]string{}
	list, err := w.users.Resource(secrets).List(request.Context(), metav1.ListOptions{})
	if err != nil {
		return nil // the request is canceled
	}
	for _, u := range list.Items {
		if strings.HasSuffix(u.GetName(), "-second") {
			continue
		}
		for _, uid := range ownersOf(p, &u) {
			if found[uid] == nil {
				found[uid] = map[string]string{}
			}
			found[uid][u.GetNamespace()+"/"+u.GetName()], _, _ = unstructured.NestedString(u.Object, "data", "password")
		}
	}
	return found
}

// checkPasswords checks that a request of the operator neither makes a new value while an old one exists, nor removes
// the only one of an upstream that goes on.
func (w *world) checkPasswords(what string, before, after map[string]map[string]string) {
	for uid, now := range after {
		for at, value := range now {
			if had := before[uid]; value != "" && had[at] != value && slices.ContainsFunc(values(had), func(v string) bool { return v != "" }) &&
				!slices.Contains(values(had), value) {
				w.problem("%s: %s has a new value, and the upstream had one in %s", what, at, encode(had))
			}
		}
	}
	if w.Setup.Recreate {
		return // the value is kept in memory meanwhile
	}
	for uid, had := range before {
		now := values(after[uid])
		if slices.Contains(now, "") || !w.goesOn(uid) {
			continue
		}
		for at, value := range had {
			if _, exists := after[uid][at]; !exists && value != "" && !slices.Contains(now, value) && !slices.Contains(now, "") {
				w.problem("%s: the value of %s is lost: %s", what, at, encode(after[uid]))
			}
		}
	}
}

// goesOn reports whether an upstream exists, is selected, and is not being deleted.
func (w *world) goesOn(uid string) bool {
	for _, u := range w.cluster.Objects(w.upstreams()) {
		if string(u.GetUID()) == uid {
			return u.GetDeletionTimestamp() == nil && u.GetLabels()["enabled"] == "yes"
		}
	}
	return false
}

func (w *world) upstreams() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: strings.ToLower(w.Setup.kind()) + "s"}
}

func values(of map[string]string) (list []string) {
	for _, v := range of {
		list = append(list, v)
	}
	return list
}

func encode(of map[string]string) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return string(text)
}
