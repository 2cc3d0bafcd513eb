//go:build controlplane

package cli_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// documentedRole is the Role that docs/activation.md names for the account that holds the Lease.
func documentedRole(t *testing.T) *rbacv1.Role {
	t.Helper()
	page := read(t, "../../docs/activation.md")
	_, section, _ := strings.Cut(page, "\n## Rights\n")
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)
	role := &rbacv1.Role{}
	if block == nil {
		t.Fatal("the page names no Role")
	}
	ok(t, yaml.UnmarshalStrict([]byte(block[1]), role))
	return role
}

// holderOfLease is an account in the cluster with the Lease, with the rights that the page names, but for some verbs.
// It returns the directory of an activation that uses it, and the user's name.
func holderOfLease(t *testing.T, ns string, without ...string) (dir, user string) {
	t.Helper()
	role := documentedRole(t)
	role.Namespace, role.Name = ns, testkit.Unique(t)
	for i := range role.Rules {
		if len(role.Rules[i].ResourceNames) > 0 {
			role.Rules[i].ResourceNames = []string{"lock"}
		}
		role.Rules[i].Verbs = slices.DeleteFunc(role.Rules[i].Verbs, func(verb string) bool { return slices.Contains(without, verb) })
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	text := must(yaml.Marshal(role))(t)
	testkit.Apply(t, ns, string(text))
	cfg := testkit.User(t, "lock")
	client := must(kubernetes.NewForConfig(cfg))(t)
	review := &authenticationv1.SelfSubjectReview{}
	self := must(client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), review, metav1.CreateOptions{}))(t)
	user = self.Status.UserInfo.Username
	testkit.Apply(t, ns, `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: `+role.Name+`},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: `+role.Name+`},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "`+user+`"}]}`)
	ok(t, testkit.RightsInForce(t.Context()))
	return activationFileFor(t, cfg, ns, "leaseDuration: 1h\nrenewDeadline: 40m\nretryPeriod: 300ms\n"), user
}

// logged collects what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.text.WriteString(args + "\n")
	}, funcr.Options{})
}

func (l *logged) says(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func (l *logged) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// TestRightsOfTheLock: the rights that the page names are enough and all needed, to take, keep, watch, hand over and
// release the lock.
func TestRightsOfTheLock(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	dir, user := holderOfLease(t, ns)
	eu, stop := takePart(t, dir, "eu", logr.Discard())
	eventuallyActive(t, eu)
	us, _ := takePart(t, dir, "us", logr.Discard())
	if out, errs, code := split(t, "activation", "handover", "-c", dir, "--timeout", "1h"); code != 0 {
		t.Errorf("handing over: %d %s%s", code, out, errs)
	}
	eventuallyActive(t, us)
	probes(t, dir, "2", 0, "Writes       2: median ")
	stop()
	used := map[string]bool{}
	for _, r := range testkit.Audit(t, testkit.By(user)) {
		if r.Code == 403 {
			t.Errorf("it was refused: %+v", r)
		}
		if r.Resource == "leases" {
			used[strings.ToLower(r.Verb)] = true
		}
	}
	granted := map[string]bool{}
	for _, rule := range documentedRole(t).Rules {
		for _, verb := range rule.Verbs {
			granted[verb] = true
		}
	}
	if !maps.Equal(used, granted) {
		t.Errorf("the page names the verbs %v, and these were used: %v", granted, used)
	}
}

// TestMissingRightsOfTheLock: what is said, and what still works, without each right.
func TestMissingRightsOfTheLock(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason  string
		without []string
		exists  bool // whether the Lease exists, released
		active  bool // whether the cluster becomes active
		says    string
	}{
		{"not watched but polled", []string{"watch"}, true, true, ""},
		{"not created but it exists", []string{"create"}, true, true, ""},
		{"not created and missing", []string{"create"}, false, false, "the lock cannot be taken, will retry"},
		{"not read", []string{"get"}, true, false, "the lock cannot be read, will retry"},
		{"not updated", []string{"update"}, true, false, "the lock cannot be taken, will retry"},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.reason, " ", "_"), func(t *testing.T) {
			t.Parallel()
			ns := testkit.Namespace(t)
			dir, user := holderOfLease(t, ns, test.without...)
			if test.exists {
				_, release := takePart(t, activationFile(t, ns, ""), "before", logr.Discard())
				testkit.Eventually(t, patience, func() (bool, string) { return testkit.Find(t, leases, ns, "lock") != nil, "no Lease" })
				release()
			}
			log := &logged{}
			eu, stop := takePart(t, dir, "eu", log.logger())
			if !test.active {
				testkit.Eventually(t, patience, func() (bool, string) {
					return log.says(test.says) && log.says("cannot "+test.without[0]+" resource"), "it does not say so: " + log.all()
				})
				testkit.Eventually(t, patience, func() (bool, string) {
					refused := testkit.Audit(t, testkit.By(user), func(r testkit.Request) bool { return r.Code == 403 })
					return len(refused) > 5, "it does not try again"
				})
				if n := log.count("\n"); eu.Active() || n > 4 {
					t.Errorf("it is active: %t; it logs %d lines:\n%s", eu.Active(), n, log.all())
				}
				return
			}
			eventuallyActive(t, eu)
			second := &logged{}
			us, _ := takePart(t, dir, "us", second.logger())
			if slices.Contains(test.without, "watch") {
				testkit.Eventually(t, patience, func() (bool, string) {
					return second.says("the lock cannot be watched: polling it, so its release is noticed later") &&
						second.says("cannot watch resource"), "it does not say so: " + second.all()
				})
			}
			stop()
			eventuallyActive(t, us) // long before the lease has run out
		})
	}
}

// TestReadingTheLock: a user who may only read the Lease sees who is active, and may change nothing.
func TestReadingTheLock(t *testing.T) {
	t.Parallel()
	ns := testkit.Namespace(t)
	eu, _ := takePart(t, activationFile(t, ns, ""), "eu", logr.Discard())
	eventuallyActive(t, eu)
	dir, _ := holderOfLease(t, ns, "create", "update", "watch")
	if out, errs, code := split(t, "activation", "-c", dir); code != 0 || !strings.Contains(out, "global       eu ") {
		t.Errorf("who is active: %d %s%s", code, out, errs)
	}
	for _, args := range [][]string{{"handover"}, {"force", "--holder", holderToConfirm(t, dir)}, {"probe", "--rounds", "2"}} {
		out, errs, code := split(t, append([]string{"activation", args[0], "-c", dir}, args[1:]...)...)
		if code != 1 || !strings.Contains(errs, "forbidden") {
			t.Errorf("%s: %d %s%s", args[0], code, out, errs)
		}
	}
	if !eu.Active() {
		t.Error("the lock was changed")
	}
}

const cronTabOperator = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: crontabs}
watch: {apiVersion: GROUP/v1, kind: CronTab, namespaces: [NS]}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata: {name: "{{ .metadata.name }}"}
      data: {host: "{{ .spec.host }}"}
conventions:
  fieldManager: operator.GROUP
  labels: {GROUP/managed-by: operator}
  hash: {annotation: GROUP/hash}
status: {enabled: false}
`

// TestStandbyConverts: each cluster has definitions and stored objects of its own, so a standby serves and publishes
// its conversion, and migrates. Its operator writes nothing until the cluster is active.
func TestStandbyConverts(t *testing.T) {
	t.Parallel()
	c := newCronTabs(t)
	dir := activationFile(t, c.ns, "leaseDuration: 1h\nrenewDeadline: 40m\nretryPeriod: 500ms\n")
	us, stop := takePart(t, dir, "us", logr.Discard())
	eventuallyActive(t, us)
	lock := read(t, dir+"/activation.yaml")
	fill := strings.NewReplacer("GROUP", c.group, "NS", c.ns)
	for name, text := range map[string]string{
		"activation.yaml": lock, "operator.yaml": fill.Replace(cronTabOperator),
		"conversion.yaml": fill.Replace(cronTabConversion) + "migrate: Auto\n",
	} {
		write(t, c.file(name), text)
	}
	c.user = testkit.Config(t)
	address := testkit.FreeAddress(t)
	eu := c.serve(t, address, address, "--activation-identity", "eu")
	c.eventuallyPublished(t, address)
	c.apply(t, "a", "example.com:80")
	c.eventuallyReads(t, "a", "map[host:example.com port:80]")
	c.store(t, "v1")
	testkit.Eventually(t, patience, func() (bool, string) {
		stored := fmt.Sprint(c.stored(t))
		return stored == "[v1]", "stored versions are " + stored
	})
	eventuallySays(t, eu, `"reason":"Standby"`)
	if testkit.Find(t, configMaps, c.ns, "a") != nil {
		t.Error("the operator of a standby writes")
	}
	stop()
	testkit.Eventually(t, patience, func() (bool, string) {
		return testkit.Find(t, configMaps, c.ns, "a") != nil,
			"the operator writes nothing"
	})
}
