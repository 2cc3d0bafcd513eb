package engine_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// everythingOfIt are the rights of widgetConfig in its namespace.
const everythingOfIt = `[{apiGroups: [test.example.com], resources: [widgets], verbs: [list, watch, patch]},
  {apiGroups: [test.example.com], resources: [widgets/status], verbs: [patch]},
  {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, patch, delete]}]`

// grant gives a ServiceAccount of home rights in a namespace, which are in force on return.
func grant(t *testing.T, ns, home, account, rules string) {
	t.Helper()
	grantTo(t, ns, account, "{kind: ServiceAccount, namespace: "+home+", name: "+account+"}", rules)
}

// grantTo is grant for any subject; the Role and the RoleBinding get a name.
func grantTo(t *testing.T, ns, name, subject, rules string) {
	t.Helper()
	testkit.Apply(t, ns, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "+name+"}, rules: "+rules+"}")
	testkit.Apply(t, ns, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: `+name+`},
	  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: `+name+`}, subjects: [`+subject+`]}`)
	if err := testkit.RightsInForce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// actor is a user who may act as these ServiceAccounts and has no other right.
func actor(t *testing.T, accounts ...string) *rest.Config {
	t.Helper()
	return testkit.User(t, "process", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}, ResourceNames: accounts,
	})
}

// acting has a config act as a ServiceAccount.
func acting(config, ns, account string) string {
	return config + "serviceAccount: {namespace: " + ns + ", name: " + account + "}\n"
}

// lettered has a config write a condition of its own and no more, so that another one may watch the same kind.
func lettered(config, letter string) string {
	before, _, _ := strings.Cut(config, "status:\n")
	return before + "status: {conditions: {ready: Ready" + letter + "}}\nevents: None\nretry: {minDelay: 1s, maxDelay: 10s}\n"
}

// problems are those of all operators: of what was there at the start, and of what a reload has brought.
func (r *running) problems() string { return text(errors.Join(r.Ready(nil), r.Reloaded(nil))) }

// cannotRun waits until an operator says why it cannot run.
func (r *running) cannotRun(name string, says ...string) {
	r.t.Helper()
	r.waitError(func(*http.Request) error { return errors.New(r.problems()) }, append(says, "operator "+name+": "))
}

// Operators share a watch within an identity, and only there.
func TestWatchesAreSharedWithinAnIdentity(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		var configs []string
		for letter, account := range map[string]string{"a": "alice", "b": "alice", "c": "bob"} {
			conf := lettered(fill(widgetConfig, ns, testkit.Unique(t)), letter)
			configs = append(configs, acting(replaceOnce(t, conf, "{{ .spec.name | default .metadata.name }}", "{{ .metadata.name }}-"+letter), ns, account))
		}
		_, counter := startCounted(t, configs...)
		testkit.Apply(t, ns, widget("web", `{data: {key: value}}`))
		for _, letter := range []string{"a", "b", "c"} {
			waitData(t, ns, "web-"+letter, "key", "value")
		}
		if n := counter.Snapshot()["WATCH widgets"]; n != 2 {
			t.Errorf("%d watches of Widgets by two identities: %v", n, counter.Snapshot())
		}
	})
}
