package generate

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/conversion"
	"github.com/corollary-dev/corollary/pkg/config/query"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator/desired"
)

// Kinds that take rights by themselves, whatever a config names.
var (
	secrets         = schema.GroupResource{Resource: "secrets"}
	leases          = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	events          = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	namespaces      = schema.GroupResource{Resource: "namespaces"}
	configMaps      = schema.GroupResource{Resource: "configmaps"}
	serviceAccounts = schema.GroupResource{Resource: "serviceaccounts"}
	definitions     = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	storedVersions  = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions/status"}
)

// everywhere is the place of what is not limited to namespaces.
var everywhere = []string{""}

// askWhetherGone lets the process ask for the definition of a kind: where there is one that serves no version, the
// kind's objects are stored all the same.
func (d *derivation) askWhetherGone(k *kinds.Kind) {
	if !kinds.IsBuiltin(k.GVK.GroupKind()) {
		d.allow(d.Process, "", everywhere, of(definitions, "whether a kind that is not served is gone"), "list")
	}
}

// election is what leader election takes. That a process leads is reported once, by an event.
func (d *derivation) election() {
	const why = "leader election"
	own := []string{d.Process.Namespace}
	d.allow(d.Process, "", own, of(leases, why), "create") // what does not exist has no name yet
	d.allow(d.Process, "", own, of(leases, why, d.Lease), "get", "watch", "update")
	if d.Shards {
		d.allow(d.Process, "", own, of(leases, "shards"), "get", "list", "update", "delete")
	}
	d.allow(d.Process, "", own, of(events, why), "create")
}

// conversions is what the webhook takes: its certificate, and to put itself into the definitions.
func (d *derivation) conversions() error {
	var written, read, migrated []string
	for _, c := range d.Conversions {
		gr, note, err := Converted(d.Kinds, c)
		if err != nil {
			return fmt.Errorf("deriving the rights of conversion %s: %w", c.Name, err)
		}
		d.note(note)
		if c.Publish == conversion.PublishVerify {
			read = append(read, gr.String())
		} else {
			written = append(written, gr.String())
		}
		if c.Migrate == conversion.MigrateAuto {
			const why = "to migrate stored objects"
			migrated = append(migrated, gr.String())
			d.allow(d.Process, "", everywhere, of(gr, why), "list", "get", "patch")
			d.allow(d.Process, "", everywhere, of(schema.GroupResource{Group: gr.Group,
				Resource: gr.Resource + "/status"}, why), "patch")
		}
	}
	beside := []string{metav1.NamespaceDefault}
	if len(migrated) > 0 {
		d.allow(d.Process, "", everywhere, of(storedVersions, "to name the stored version", migrated...), "patch")
		d.allow(d.Process, "", beside, of(events, "events about migrations"), "create", "patch")
	}
	if len(d.Conversions) == 0 {
		return nil
	}
	const why = "the certificate of the webhook that converts"
	own := []string{d.Process.Namespace}
	if len(written) > 0 {
		d.allow(d.Process, "", everywhere, of(definitions, "to publish the webhook that converts",
			written...), "get", "patch")
	}
	if len(read) > 0 {
		d.allow(d.Process, "", everywhere, of(definitions, "to compare spec.conversion", read...), "get")
	}
	d.allow(d.Process, "", beside, of(events, "events about conversions"), "create", "patch")
	d.allow(d.Process, "", own, of(secrets, why, d.Secret), "get")
	if !d.SecretReadOnly {
		d.allow(d.Process, "", own, of(secrets, why), "create") // what does not exist has no name yet
		d.allow(d.Process, "", own, of(secrets, why, d.Secret), "update")
	}
	return nil
}

// operatorRights is the derivation for one operator.
type operatorRights struct {
	*derivation
	*config.Operator
	to Identity
	up *kinds.Kind
	// observing: mode is Observe, and nothing is written but the status.
	observing bool
}

func (d *derivation) operator(op *config.Operator) error {
	up, err := d.upstreamKind(op)
	if err != nil {
		return err
	}
	r := &operatorRights{derivation: d, Operator: op, to: d.Process, up: up, observing: op.Mode == config.ModeObserve}
	if sa := op.ServiceAccount; sa != nil {
		r.to = Identity{Namespace: sa.Namespace, Name: sa.Name}
		d.allow(d.Process, "", []string{sa.Namespace}, of(serviceAccounts,
			"who operator "+op.Metadata.Name+" acts as", sa.Name), "impersonate")
	}
	r.upstreams()
	for i := range op.Downstreams {
		if err := r.downstream(&op.Downstreams[i]); err != nil {
			return err
		}
	}
	if err := r.before(); err != nil {
		return err
	}
	for i := range op.Inputs {
		if err := r.input(&op.Inputs[i]); err != nil {
			return err
		}
	}
	r.guard()
	r.events()
	return nil
}

// upstreamKind is the kind of the upstreams.
func (d *derivation) upstreamKind(op *config.Operator) (*kinds.Kind, error) {
	if op.Source != nil {
		return desired.RowKind(), nil
	}
	return d.kind(op.Watch.APIVersion, op.Watch.Kind)
}

// grantTo adds rights of the operator's own identity.
func (r *operatorRights) grantTo(places []string, what target, verbs ...string) {
	r.allow(r.to, r.Metadata.Name, places, what, verbs...)
}

// database is what the connection string of a query takes, which is at a path.
func (r *operatorRights) database(at string, rows *query.Rows) {
	if server, key := rows.Server(); server != nil {
		r.connectionString(at+"."+key+".dsnFrom", &server.DSNFrom)
	}
}

func (r *operatorRights) connectionString(at string, from *query.DSNFrom) {
	if from != nil && from.Secret != nil {
		r.grantTo([]string{from.Secret.Namespace}, of(secrets, at, from.Secret.Name), "get")
	}
}

// upstreams are listed and watched. One is read past the cache to learn what a refused write of the status means,
// whether one that is not selected any more still exists, and what is recorded of deletion.before.
func (r *operatorRights) upstreams() {
	if r.Source != nil {
		r.database("source", &r.Source.Rows)
		r.connectionString("source.writeDSNFrom", r.Source.WriteDSNFrom)
		return
	}
	const why = "the upstreams"
	places, main := r.upstreamPlaces(), resourceOf(r.up)
	r.grantTo(places, of(main, why), "list", "watch")
	if *r.Status.Enabled || r.Watch.LabelSelector != nil || len(r.Watch.MatchConditions) > 0 ||
		r.Deletion.Before != nil && !r.observing {
		r.grantTo(places, of(main, why), "get")
	}
	if !r.observing && len(r.Conventions.Finalizers()) > 0 {
		r.grantTo(places, of(main, "the finalizer"), "patch")
	}
	if *r.Status.Enabled {
		status := main
		if r.up.HasStatus { // else it is a field like any other
			status = resourceOf(r.up, "status")
		}
		r.grantTo(places, of(status, "their status"), "patch")
	}
	if r.Watch.NamespaceSelector != nil {
		what := of(namespaces, "watch.namespaceSelector")
		if r.up.Namespaced {
			what.names = r.Watch.Namespaces // each is watched by its name
		}
		r.grantTo(everywhere, what, "list", "watch")
	}
}

// downstream is about one downstream. Creating by server-side apply takes create and patch, and what lets a changed
// desired state be applied lets a field be taken back, a mark be renamed and an orphan be released.
func (r *operatorRights) downstream(d *config.Downstream) error {
	k, err := r.kind(d.APIVersion, d.Kind)
	if err != nil {
		return err
	}
	places, what := r.targetPlaces(k, d.TargetNamespaces), of(resourceOf(k), "downstream "+d.Name)
	r.grantTo(places, what, "get", "list", "watch")
	if r.observing {
		return nil
	}
	r.askWhetherGone(k)
	r.grantTo(places, what, "patch")
	r.noteEscalation(k)
	if d.Ownership == config.OwnershipFields {
		return nil
	}
	r.grantTo(places, what, "create")
	if d.DeletionPolicy == config.DeletionDelete || d.UpdatePolicy == config.UpdateRecreate {
		r.grantTo(places, what, "delete")
	}
	return nil
}

// noteEscalation notes kinds that the API server lets nobody write without the rights that they grant.
func (r *operatorRights) noteEscalation(k *kinds.Kind) {
	if k.GVK.Group != "rbac.authorization.k8s.io" {
		return
	}
	verb, on, resources := "escalate", "it", k.GVR.GroupResource().String()
	if strings.HasSuffix(k.GVK.Kind, "Binding") {
		verb, on, resources = "bind", "the roles that it binds",
			"roles.rbac.authorization.k8s.io,clusterroles.rbac.authorization.k8s.io"
	}
	r.note(fmt.Sprintf("operator %[1]s makes a %[2]s: the API server lets it grant only rights that %[3]s/%[4]s has, "+
		"unless it has "+
		"the verb %[5]s on %[6]s. Grant that by hand: kubectl create clusterrole %[1]s-%[5]s --verb=%[5]s --resource=%[7]s "+
		"--resource-name=ROLE; kubectl create clusterrolebinding %[1]s-%[5]s --clusterrole=%[1]s-%[5]s "+
		"--serviceaccount=%[3]s:%[4]s",
		r.Metadata.Name, k.GVK.Kind, r.to.Namespace, r.to.Name, verb, on, resources))
}

// before is about the objects of deletion.before, which have our finalizer. The garbage collector takes those that have
// an owner reference, which kubectl delete --cascade=orphan takes off: what has none in the end is deleted. Where mode
// is Observe they are not even watched.
func (r *operatorRights) before() error {
	b := r.Deletion.Before
	if b == nil || r.observing {
		return nil
	}
	k, err := r.kind(b.APIVersion, b.Kind)
	if err != nil {
		return err
	}
	r.grantTo(r.targetPlaces(k, b.TargetNamespaces), of(resourceOf(k), "deletion.before"), "get", "list", "watch",
		"create", "patch", "delete")
	r.askWhetherGone(k)
	r.noteEscalation(k)
	return nil
}

// input is about one input. It is never read but by its watch; where the name is fixed, that one object is all that is
// watched.
func (r *operatorRights) input(in *config.Input) error {
	if in.SQL != nil {
		r.database("input "+in.Name, in.SQL)
		return nil
	}
	k, err := r.kind(in.APIVersion, in.Kind)
	if err != nil {
		return err
	}
	what := of(resourceOf(k), "input "+in.Name)
	if in.FixedName != "" {
		what.names = []string{in.FixedName}
	}
	r.grantTo(placesOf(in.In(r.Watch.Namespaces, r.up.Namespaced), k.Namespaced), what, "list", "watch")
	if in.Missing == config.MissingAllow {
		r.askWhetherGone(k)
	}
	return nil
}

// guard is about the ConfigMaps in which a person decides, which are watched while guard waits, and during a rollout.
// Where mode is Observe nothing waits.
func (r *operatorRights) guard() {
	if r.observing {
		return
	}
	watched := func(key string, at *common.Confirm) {
		if at != nil {
			r.grantTo([]string{at.Namespace}, of(configMaps, key, at.ConfigMap), "list", "watch")
		}
	}
	if r.Guard != nil {
		watched("guard.confirm", r.Guard.Confirm)
	}
	if r.Rollout != nil {
		watched("rollout.control", r.Rollout.Control)
	}
}

// events are written by the process: about upstreams beside them, those of a cluster-scoped one in the namespace
// default, and about the operator as a whole in the process's own. Equal ones only raise the count of the first.
func (r *operatorRights) events() {
	if r.Events == config.EventsNone || r.observing {
		return
	}
	beside := r.upstreamPlaces()
	if !r.up.Namespaced {
		beside = []string{metav1.NamespaceDefault}
	}
	operator := r.Metadata.Name
	if r.to != r.Process {
		operator = "" // the operator's own rights are another's
	}
	r.allow(r.Process, operator, beside, of(events, "events about upstreams"), "create", "patch")
	if own := r.Process.Namespace; !slices.Contains(beside, own) && !slices.Contains(beside, "") {
		r.allow(r.Process, "", []string{own}, of(events, "events about operators"), "create", "patch")
	}
}

func (r *operatorRights) upstreamPlaces() []string {
	return placesOf(r.Watch.Namespaces, r.up.Namespaced)
}

// targetPlaces is where objects may be made, which is where the engine watches them.
func (r *operatorRights) targetPlaces(k *kinds.Kind, allowed config.TargetNamespaces) []string {
	return targetPlaces(r.Operator, k, allowed)
}

func targetPlaces(op *config.Operator, k *kinds.Kind, allowed config.TargetNamespaces) []string {
	var within []string
	switch allowed.From {
	case config.NamespacesList:
		within = allowed.Names
	case config.NamespacesSame:
		within = op.Watch.Namespaces
	}
	return placesOf(within, k.Namespaced)
}

// placesOf lists where a role is needed for a kind within namespaces: everywhere where there are none, or could be
// none.
func placesOf(within []string, namespaced bool) []string {
	if len(within) == 0 || !namespaced {
		return everywhere
	}
	return within
}

// release is what `corollary release` does for one operator, whatever its mode.
func (d *derivation) release(op *config.Operator) error {
	if len(op.Conventions.Finalizers()) == 0 || op.Source != nil {
		return nil
	}
	allow := func(apiVersion, kind string, to config.TargetNamespaces, why string) error {
		k, err := d.kind(apiVersion, kind)
		if err == nil {
			d.allow(d.Process, op.Metadata.Name, targetPlaces(op, k, to), of(resourceOf(k), why), "list", "patch")
			d.askWhetherGone(k)
		}
		return err
	}
	watched := config.TargetNamespaces{From: config.NamespacesSame}
	err := allow(op.Watch.APIVersion, op.Watch.Kind, watched, "the finalizer of upstreams")
	if b := op.Deletion.Before; err == nil && b != nil {
		err = allow(b.APIVersion, b.Kind, b.TargetNamespaces, "the finalizer of deletion.before")
	}
	for i := range op.Downstreams {
		if down := &op.Downstreams[i]; err == nil && down.OutlivesUpstream() {
			err = allow(down.APIVersion, down.Kind, down.TargetNamespaces,
				"owner references of downstream "+down.Name+", which is kept")
		}
	}
	return err
}
