//go:build controlplane

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/cli"
)

// TestFlowSchemas: by what the API server says of each request, those of a process and of the account of an operator
// are put where the printed objects want them, and those of another account are not.
func TestFlowSchemas(t *testing.T) {
	ns := testkit.Namespace(t)
	config := read(t, operatorFile)
	file := filepath.Join(t.TempDir(), "operator.yaml")
	acting := strings.Replace(config, "\nwatch:", "\nserviceAccount: {namespace: "+ns+", name: widgets}\nwatch:", 1)
	write(t, file, acting)
	var out, errs bytes.Buffer
	if code := cli.Main([]string{"generate", "flowschema", "-c", file, "-n", ns, "--leader-election-id", "lead"},
		cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	for _, document := range strings.Split(out.String(), "---\n")[1:] {
		applied := testkit.Apply(t, "", document)
		resource := map[string]string{"FlowSchema": "flowschemas", "PriorityLevelConfiguration": "prioritylevelconfigurations"}[applied.GetKind()]
		gvr := schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: resource}
		t.Cleanup(func() { // the test's own context has ended by then
			if err := testkit.Dynamic(t).Resource(gvr).Delete(context.Background(), applied.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	for _, row := range []struct{ reason, account, path, schema, level string }{
		{"the process works", "corollary", "/api/v1/namespaces/" + ns + "/configmaps", ns + "-corollary", ns + "-corollary"},
		{"an operator works", "widgets", "/apis/tools.example.com/v1/widgets", ns + "-corollary", ns + "-corollary"},
		{"the process renews its Lease", "corollary", "/apis/coordination.k8s.io/v1/namespaces/" + ns + "/leases/lead",
			ns + "-corollary-leases", "leader-election"},
		{"it reads a Lease elsewhere", "corollary", "/apis/coordination.k8s.io/v1/namespaces/default/leases/lead",
			ns + "-corollary", ns + "-corollary"},
		{"another account works", "another", "/api/v1/namespaces/" + ns + "/configmaps", "service-accounts", "workload-low"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			testkit.Eventually(t, testkit.Patience, func() (bool, string) {
				s, level := classified(t, ns, row.account, row.path)
				return s == row.schema && level == row.level, fmt.Sprintf("the request is of FlowSchema %s and level %s", s, level)
			})
		})
	}
}

// classified returns the names of the FlowSchema and of the priority level by which the API server handled a request.
func classified(t *testing.T, ns, account, path string) (flowSchema, level string) {
	t.Helper()
	cfg := rest.CopyConfig(testkit.Config(t))
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":" + account,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"}}
	client := must(rest.HTTPClientFor(cfg))(t)
	request := must(http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+path, http.NoBody))(t)
	response, err := client.Do(request)
	ok(t, err)
	_ = response.Body.Close() // what it says does not matter
	named := func(resource, header string) string {
		gvr := schema.GroupVersionResource{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: resource}
		for _, object := range testkit.List(t, gvr, "", "") {
			if string(object.GetUID()) == response.Header.Get(header) {
				return object.GetName()
			}
		}
		return "(none)"
	}
	return named("flowschemas", "X-Kubernetes-Pf-Flowschema-Uid"), named("prioritylevelconfigurations", "X-Kubernetes-Pf-Prioritylevel-Uid")
}
