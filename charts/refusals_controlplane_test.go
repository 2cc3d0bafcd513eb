//go:build controlplane

package charts

import (
	"strings"
	"testing"
)

// TestRefused: what is wrong with values is said by helm, before anything is in the cluster, with the value's path.
func TestRefused(t *testing.T) {
	t.Parallel()
	notConfig := write(t, "notes.md", "# Notes\n\nNot a config.\n")
	conventions := write(t, "conventions.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions: {}\n")
	half := write(t, "half.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {}\nwatch: {kind: Hello}\n")
	again := write(t, "again.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {name: hello}\n"+
		"watch: {apiVersion: v1, kind: Secret}\ndownstreams: []\n")
	within := func(namespaces string) string {
		return write(t, "within.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {name: within}\n"+
			"watch: {apiVersion: v1, kind: Secret, namespaces: "+namespaces+"}\ndownstreams: []\n")
	}
	naming := func(files string) string {
		return write(t, "naming.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {name: naming}\n"+
			"watch: {apiVersion: v1, kind: Secret}\n"+files+"\n")
	}
	misspelt := write(t, "misspelt.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Operator\nmetadata: {name: misspelt}\n"+
		"watch: {apiVersion: v1, knd: Secret}\ndownstreams: []\nretri: {minDelay: 5s}\n")
	for _, tc := range []struct {
		reason string
		args   []string
		says   string // a part of it
	}{
		{"a value of another type", []string{"--set=replicas=two"}, "at '/replicas': got string, want integer"},
		{"a value that is out of range", []string{"--set=workers=0"}, "at '/workers': minimum: got 0, want 1"},
		{"a misspelt value", []string{"--set=image.repo=x"}, "at '/image': additional properties 'repo' not allowed"},
		{"a misspelt value at the top", []string{"--set=replica=3"}, "at '': additional properties 'replica' not allowed"},
		{"a word that is none of those allowed", []string{"--set=operators.hello.mode=Enfroce"},
			"at '/operators/hello/mode': value must be one of 'Enforce', 'Observe'"},
		{"a misspelt key of a config", []string{"--set=operators.hello.wach.kind=X"},
			"at '/operators/hello': additional properties 'wach' not allowed"},
		{"a key that a config lacks", []string{"--set=operators.hello.downstreams[0].kind=null"},
			"at '/operators/hello/downstreams/0/kind': got null, want string"},
		{"a config that has hardly begun", []string{"--set=operators.other.mode=Observe"},
			"at '/operators/other': missing properties 'watch', 'status'"},
		{"a name that no operator may have", []string{"--set=operators.Hello.mode=Observe"},
			"at '/operators': additional properties 'Hello' not allowed"},
		{"a name that contradicts its key", []string{"--set=operators.hello.metadata.name=other"},
			"operators.hello has metadata.name other: leave metadata out, or give the key that name"},
		{"a log level that does not exist", []string{"--set=log.level=loud"}, "at '/log/level': 'loud' does not match pattern"},
		{"a duration without unit", []string{"--set-string=leaderElection.leaseDuration=15"},
			"at '/leaderElection/leaseDuration': '15' does not match pattern"},
		{"a lease that stores fractions", []string{"--set=leaderElection.leaseDuration=20500ms"},
			"leaderElection.leaseDuration is 20500ms: whole seconds are needed, at least one"},
		{"a leader that writes while another starts", []string{"--set=leaderElection.renewDeadline=0.25m"},
			"leaderElection.renewDeadline is 0.25m: it must be shorter than leaseDuration, which is 15s"},
		{"a renewal that cannot be tried again",
			[]string{"--set=leaderElection.leaseDuration=1m30s,leaderElection.renewDeadline=1m,leaderElection.retryPeriod=50s"},
			"leaderElection.retryPeriod is 50s: 1.2 times that must be shorter than renewDeadline, which is 1m"},
		{"a variable that is no text", []string{"--set=env[0].name=A,env[0].value=1"}, "at '/env/0/value': got number, want null or string"},
		{"one port for two", []string{"--set=metrics.port=8081"}, "metrics.port and probes.port are both 8081: give each another port"},
		{"two that write at a time", []string{"--set=extraArgs={--leader-elect=false}"},
			"extraArgs has --leader-elect=false: leave it out and set the value replicas"},
		{"a Lease that the rights are not about", []string{"--set=extraArgs={--leader-election-id,other}"},
			"extraArgs has --leader-election-id: leave it out and set the value leaderElection.id"},
		{"an identity that the values do not have", []string{"--set=extraArgs={--activation-identity=eu}"},
			"extraArgs has --activation-identity=eu: leave it out and set the value activation.identity"},
		{"a Lease elsewhere", []string{"--set=extraArgs={-n=other}"},
			"extraArgs has -n=other: leave it out, the Lease and events are in the namespace of the release, where the rights are"},
		{"a Lease elsewhere, by the environment", []string{"--set=env[0].name=COROLLARY_LEADER_ELECTION_NAMESPACE,env[0].value=other"},
			"env has COROLLARY_LEADER_ELECTION_NAMESPACE: leave it out, the Lease and events are in the namespace of the release, where the " +
				"rights are"},
		{"what has no effect, since the flag wins", []string{"--set=env[0].name=COROLLARY_WORKERS,env[0].value=many"},
			"env has COROLLARY_WORKERS: leave it out and set the value workers"},
		{"a port that nobody asks", []string{"--set=extraArgs={--kube-api-qps=5,--health-probe-bind-address=:9}"},
			"extraArgs has --health-probe-bind-address=:9: leave it out and set the value probes.port"},
		{"a config that has no rights", []string{"--set=extraArgs={-c/tmp/x}"},
			"extraArgs has -c/tmp/x: leave it out and set the value operatorFiles"},
		{"nothing where something is needed", []string{"--set=metrics.port=null"}, "at '/metrics': missing property 'port'"},
		{"nothing where that would open every port", []string{"--set=networkPolicy.apiServerPorts=null"},
			"at '/networkPolicy': missing property 'apiServerPorts'"},
		{"a whole part taken away", []string{"--set=release=null"}, "at '': missing property 'release'"},
		{"a kind without its group", []string{"--set=kinds.Hello.resource=hellos"}, "at '/kinds': additional properties 'Hello' not allowed"},
		{"no operator", []string{"--set=operators=null"},
			"no operator is given: set operators in a values file, or add --set-file operatorFiles.NAME=FILE"},
		{"the only operator taken away", []string{"--set=operators.hello=null"}, "no operator is given"},
		{"a conversion that is verified, and not named", []string{"--set=operators=null", "--set=conversion.verify={a.example.com}"},
			"conversion.verify has a.example.com, which is not in conversion.crds: add it there"},
		{"an issuer for a certificate that nobody issues",
			[]string{"--set=conversion.crds={a.example.com}", "--set=conversion.certificate.certManager.issuerRef.name=ca"},
			"issuerRef is set and has no effect without conversion.certificate.certManager.enabled"},
		{"no image", []string{"--set=image.repository="}, "image.repository is not set: name the image as your registry has it"},
		{"an account that nobody creates", []string{"--set=serviceAccount.create=false"}, "serviceAccount.name is not set"},
		{"a file's name for its text", []string{"--set=operatorFiles.app=app.yaml"},
			"operatorFiles.app is not a config of an operator: it is the name of a file, app.yaml: give the text with --set-file"},
		{"a file that is no YAML map", []string{"--set-file=operatorFiles.app=" + notConfig},
			"operatorFiles.app is not a config of an operator: "},
		{"a file of another kind", []string{"--set-file=operatorFiles.app=" + conventions},
			"it should begin with apiVersion: corollary.dev/v1alpha1 and kind: Operator (a file that configs name belongs under files)"},
		{"a file that lacks what is needed", []string{"--set-file=operatorFiles.app=" + half},
			"operatorFiles.app is not a config of an operator: it has no metadata.name, no watch.apiVersion, no downstreams"},
		{"a misspelt key of a file's config, below a list and above a map", []string{"--set-file=operatorFiles.app=" +
			naming("downstreams: [{name: x}, {name: y, deletonPolicy: Orphan}]\nretri: {minDelay: 5s}")},
			"operatorFiles.app is not a config of an operator: downstreams[1].deletonPolicy: unknown field: valid fields are adopt, " +
				"adoptionPolicy, after, apiVersion, deletionPolicy, "},
		{"all that is misspelt at once, and what that leaves out", []string{"--set-file=operatorFiles.app=" + misspelt},
			"it has no watch.kind;\n  retri: unknown field: valid fields are activation, apiVersion, conventions, "},
		{"a word of a file's config that is none of those allowed", []string{"--set-file=operatorFiles.app=" +
			naming("downstreams: [{drift: {policy: Reprt}}]")},
			"downstreams[0].drift.policy is Reprt: it may be Enforce, Report, Ignore; corollary check -c FILE reports all errors"},
		{"a misspelt key of the conventions that a config names", []string{"--set-file=operatorFiles.app=" +
			naming("downstreams: []\nconventionsFile: c.yaml"),
			`--set-file=files.c\.yaml=` +
				write(t, "c.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Conventions\nconventions: {fieldManger: x, owner: {referenceTo: "+
					"true}}\n")},
			"files.c\\.yaml is not a file of conventions: conventions.fieldManger: unknown field: valid fields are activationToken, " +
				"annotations, fieldManager, finalizer, hash, labels, owner, pause, previous, reconcile, shard;\n" +
				"  conventions.owner.referenceTo: unknown field: valid fields are annotation, reference\n"},
		{"a config in the place of conventions", []string{"--set-file=operatorFiles.app=" + naming("downstreams: []\nconventionsFile: t/c.yaml"),
			"--set-file=files.t/c\\.yaml=" + again},
			`files.t/c\.yaml is not a file of conventions: it should begin with apiVersion: corollary.dev/v1alpha1 and kind: Conventions`},
		{"a config without the file that it names", []string{"--set-file=operatorFiles.app=" +
			naming("downstreams: []\nconventionsFile: a/../shared.yaml")},
			`operatorFiles.app names a missing file: a/../shared.yaml: add --set-file 'files.shared\.yaml=FILE', or let corollary generate chart-values`},
		{"a config without a file above it, which cannot be mounted as such", []string{"--set-file=operatorFiles.app=" +
			naming("downstreams: []\nconventionsFile: ../shared.yaml")},
			"operatorFiles.app names a missing file: ../shared.yaml: let corollary generate chart-values -c CONFIG write"},
		{"templates that are not given", []string{"--set-file=operatorFiles.app=" +
			naming("downstreams: [{templateFile: x.tmpl}]\ndeletion: {before: {templateFile: t/y.tmpl}}"), `--set=files.x\.tmpl=x`},
			`operatorFiles.app names a missing file: t/y.tmpl: add --set-file 'files.t/y\.tmpl=FILE'`},
		{"a namespace that is no text", []string{"--set-file=operatorFiles.app=" + within("[team-a, no]")},
			"a config names a namespace that YAML reads as false, not as text: quote it"},
		{"no namespace", []string{"--set-file=operatorFiles.app=" + within("[]")},
			"a config has an empty list of namespaces: leave it out for all of them"},
		{"two operators of one name", []string{"--set-file=operatorFiles.app=" + again}, "operators.hello: another operator is called hello"},
		{"two operators in one file", []string{"--set-file=operatorFiles.hello=" + again},
			"operatorFiles.hello: operators.hello would be mounted as the same file"},
		{"a template beside the configs, which would be read as one", []string{`--set=files.deployment\.yaml=x`},
			`files.deployment\.yaml would be read as a config: rename it, or put it into a folder, such as templates/deployment.yaml`},
		{"a file in the place of a config", []string{`--set-file=files.hello\.yaml=` + conventions},
			`files.hello\.yaml: a config is mounted as that file`},
		{"two files of which one would be lost", []string{"--set=files.a/b/c=x,files.a/b__c=y"},
			"files: a/b/c and a/b__c would have one key in a ConfigMap, a__b__c: rename one"},
		{"shards beside a lock that one pod holds", []string{"--set=shards=16", `--set-file=files.lock\.yaml=` +
			write(t, "lock.yaml", "apiVersion: corollary.dev/v1alpha1\nkind: Activation\nmetadata: {name: global}\netcd: {key: /lock}\n")},
			`shards is 16, and files.lock\.yaml is an activation with a lock, which one process of a cluster holds`},
		{"a file outside of the configs' folder", []string{`--set=files.\.\./x=y`}, "at '/files': additional properties '../x' not allowed"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"template", "test", chart, "--values=testdata/values/minimal.yaml"}, tc.args...)
			stdout, stderr, err := helm(t, args...)
			if err == nil || !strings.Contains(stderr, tc.says) {
				t.Errorf("%v: want it to say %q:\n%s", err, tc.says, stderr)
			}
			if stdout != "" {
				t.Errorf("it renders\n%s", stdout)
			}
		})
	}
}
