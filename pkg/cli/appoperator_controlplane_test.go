//go:build controlplane

package cli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// An operator reads v1 while clients write v1beta1; then v1 is stored, the objects are migrated, and v1beta1 goes. The
// Deployment stays the same object through all of it.
func TestAppoperatorChangesItsVersion(t *testing.T) {
	t.Parallel()
	ns, group, dir := testkit.Namespace(t), testkit.Unique(t)+".example.com", t.TempDir()
	here := func(name string) string {
		text := read(t, filepath.Join("../../examples/conversions/appoperator", name))
		return strings.NewReplacer("tools.example.com", group, "namespace: default", "namespace: "+ns).Replace(text)
	}
	crd, configs := filepath.Join(t.TempDir(), "crd.yaml"), filepath.Join(dir, "operator.yaml")
	for name, text := range map[string]string{crd: here("crd.yaml"), configs: here("operator.yaml")} {
		write(t, name, text)
	}
	testkit.InstallCRDs(t, here("crd.yaml"))
	certificate := filepath.Join(dir, "certificate.yaml")
	expect(t, 0, "", "convert", "prove", "-c", configs, "--crds", crd, "--objects", "500", "-o", certificate)
	testkit.Apply(t, ns, here("appoperator.yaml")) // stored in v1beta1, and to be read once it is converted
	address := testkit.FreeAddress(t)
	start(t, testkit.Config(t), "run", "-c", dir, "--webhook-url", "https://"+address, "--webhook-bind-address", address,
		"--webhook-secret", ns+"/webhook", "--metrics-bind-address", "0", "--health-probe-bind-address", "0")

	resource := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: "appoperators"}
	}
	eventually := func(gvr schema.GroupVersionResource, name string, want string, path ...string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			u, err := testkit.Dynamic(t).Resource(gvr).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
			return fmt.Sprint(value) == want, fmt.Sprintf("%s is %v", strings.Join(path, "."), value)
		})
	}
	greets := func(word string) {
		t.Helper()
		eventually(deployments, "shop", fmt.Sprintf("[map[env:[map[name:GREETING value:%s]] image:registry.example.com/shop:1.10 "+
			"imagePullPolicy:IfNotPresent name:app resources:map[] terminationMessagePath:/dev/termination-log "+
			"terminationMessagePolicy:File]]", word), "spec", "template", "spec", "containers")
	}

	greets("welcome")
	eventually(resource("v1"), "shop", "map[nodeSelector:map[disk:ssd]]", "spec", "scheduling")
	uid := testkit.Get(t, deployments, ns, "shop").GetUID()

	testkit.Patch(t, resource("v1"), ns, "shop", "somebody", `{"spec":{"message":"hi"}}`)
	greets("hi")
	eventually(resource("v1beta1"), "shop", "hi", "spec", "greeting")

	name := "appoperators." + group
	versions := func(change func(v map[string]any)) {
		t.Helper()
		testkit.Update(t, definitions, "", name, func(u *unstructured.Unstructured) {
			list, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			for _, v := range list {
				change(v.(map[string]any))
			}
			_ = unstructured.SetNestedSlice(u.Object, list, "spec", "versions")
		})
	}
	versions(func(v map[string]any) { v["storage"] = v["name"] == "v1" })
	testkit.Eventually(t, patience, func() (bool, string) {
		code, out := run(t, "migrate", name, "-c", dir, "--kubeconfig", testkit.Kubeconfig(t))
		return code == 0, out
	})
	stored, _, _ := unstructured.NestedStringSlice(testkit.Get(t, definitions, "", name).Object, "status", "storedVersions")
	if fmt.Sprint(stored) != "[v1]" {
		t.Errorf("stored are %v", stored)
	}
	versions(func(v map[string]any) { v["served"] = v["name"] == "v1" })
	testkit.Patch(t, resource("v1"), ns, "shop", "somebody", `{"spec":{"message":"bye"}}`)
	greets("bye")
	if now := testkit.Get(t, deployments, ns, "shop").GetUID(); now != uid {
		t.Error("the Deployment was made anew")
	}
}
