package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ActivationFile is a file of kind Activation, and the operators that follow it.
type ActivationFile struct {
	Activation
	Operators []*File

	file *File
}

// Valid reports whether nothing was found wrong in the file.
func (a *ActivationFile) Valid() bool { return a.file.Valid() }

// Path is the file as it was given.
func (a *ActivationFile) Path() string { return a.file.Path }

// Warnings say what the lock cannot promise.
func (a *ActivationFile) Warnings() []string {
	if a.DNS == nil {
		return nil
	}
	return []string{"a name in DNS is not a lock: it gives no fencing token, and two clusters may be active at a time if resolvers " +
		"answer differently, such as from a cache. Take another lock if that does harm"}
}

// Place is where a path in the file leads: relative ones begin at the file.
func (a *ActivationFile) Place(name string) string { return a.file.Place(name) }

// Errorf returns an error at a path of the file.
func (a *ActivationFile) Errorf(path, fix, format string, args ...any) *Error {
	return a.file.Errorf(path, fix, format, args...)
}

// Digest changes with what the file says.
func (a *ActivationFile) Digest() string {
	text, err := json.Marshal(a.Activation)
	if err != nil {
		panic("writing the activation as JSON: " + err.Error()) // its values came from JSON: cannot happen
	}
	return string(text)
}

// Follows is the activation that the operator follows, by LoadActivations; nil for none.
func (f *File) Follows() *ActivationFile { return f.follows }

// LoadActivations returns the activations in the files that o names, each with the operators that follow it. The errors are
// those of files of kind Activation, and of operators whose activation is missing or has errors, which must not be run either:
// Load reports the others.
func LoadActivations(o Options, operators []*File) ([]*ActivationFile, Errors) {
	var list []*ActivationFile
	sources, _ := find(o.Files)
	var errs Errors
	for _, s := range sources {
		data, err := s.read(o.Stdin)
		if err != nil {
			continue // Load reports it
		}
		f := &File{Path: s.path, document: parseDocument(s.path, data)}
		if f.values["apiVersion"] != APIVersion || f.values["kind"] != ActivationKind {
			continue
		}
		a, found := readActivation(f, o)
		errs, list = append(errs, found...), append(list, a)
	}
	byName := map[string]*ActivationFile{}
	for _, a := range list {
		if other := byName[a.Metadata.Name]; other != nil {
			twice := a.Errorf("metadata.name", "rename one of them", "%s is an activation of that name too", other.Path())
			a.file.problems, errs = append(a.file.problems, twice), append(errs, twice)
		}
		byName[a.Metadata.Name] = a
	}
	for _, f := range operators {
		a, err := f.activationAmong(list)
		if err != nil {
			f.problems, errs = append(f.problems, err), append(errs, err)
			continue
		}
		if a == nil {
			continue
		}
		a.Operators = append(a.Operators, f)
		if a.DNS != nil && f.Conventions.ActivationToken != nil {
			none := f.Errorf("conventions.activationToken", "remove it, or take a lock that gives a token", "activation %s is a name in DNS, "+
				"which gives no token", a.Metadata.Name)
			f.problems, errs = append(f.problems, none), append(errs, none)
		}
		if f.follows = a; !a.file.Valid() {
			broken := f.Errorf("activation", "fix "+a.Path(), "the activation that the operator follows has errors")
			f.problems, errs = append(f.problems, broken), append(errs, broken)
		}
	}
	return list, errs.Sort()
}

// activationAmong is the activation that an operator follows; nil for none.
func (f *File) activationAmong(list []*ActivationFile) (*ActivationFile, *Error) {
	names := make([]string, len(list))
	for i, a := range list {
		names[i] = a.Metadata.Name
	}
	at := slices.Index(names, f.Activation)
	switch {
	case f.reported("activation"), f.Activation == EveryCluster:
		return nil, nil
	case at >= 0:
		return list[at], nil
	case f.Activation != "" && len(list) == 0:
		return nil, f.Errorf("activation", "name the file of kind Activation with -c, too", "no activation is loaded")
	case f.Activation != "":
		fix := fixForUnknown(f.Activation, names, "loaded are")
		return nil, f.Errorf("activation", fix, "no activation %q is loaded", clip(f.Activation))
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return nil, f.Errorf("activation", "name one of "+strings.Join(names, ", ")+", or write "+EveryCluster+
			" for an operator that writes in every cluster", "required value is missing, since several activations are loaded")
	case f.Conventions.ActivationToken != nil:
		return nil, f.Errorf("conventions.activationToken", "name a file of kind Activation with -c, or remove the key",
			"the operator follows no activation, which gives the token")
	}
	return nil, nil
}

func readActivation(f *File, o Options) (*ActivationFile, Errors) {
	a := &ActivationFile{file: f}
	a.LeaseDuration, a.RenewDeadline, a.RetryPeriod = Duration(15*time.Second), Duration(10*time.Second), Duration(2*time.Second)
	v := &validator{File: f, errs: f.decode(&a.Activation)}
	fill(&a.OnLost, OnLostStandby)
	if a.DNS != nil && !f.given("dns", "interval") {
		a.DNS.Interval = a.RetryPeriod
	}
	if a.DynamoDB != nil {
		fill(&a.DynamoDB.PartitionKey, "key")
	}
	if o.Identity != "" {
		a.Identity = o.Identity
	}
	if v.required("metadata.name", a.Metadata.Name, "name the activation") {
		v.form(dnsLabel, "metadata.name", a.Metadata.Name, a.Metadata.Name)
	}
	v.activation(&a.Activation, o.Anybody)
	f.problems = v.errs
	return a, v.errs
}

func (v *validator) activation(a *Activation, anybody bool) {
	const identify = "set it, --activation-identity or COROLLARY_ACTIVATION_IDENTITY: different in each cluster"
	if (a.Identity != "" || !anybody) && v.required("identity", a.Identity, identify) {
		v.form(identityName, "identity", a.Identity, a.Identity)
	}
	v.activationLock(a)
	v.activationTimes(a)
}

// retryJitter is by how much a renewal may come later than the retry period, as in client-go's leader election.
const retryJitter = 1.2

// activationTimes checks what the times demand of one another, as leadership.Timings does.
func (v *validator) activationTimes(a *Activation) {
	lease, deadline, retry := time.Duration(a.LeaseDuration), time.Duration(a.RenewDeadline), time.Duration(a.RetryPeriod)
	switch {
	case lease < time.Second || lease%time.Second != 0:
		v.add("leaseDuration", "write whole seconds, at least 1s", "%s is not a number of whole seconds, which the lock stores", lease)
	case retry <= 0:
		v.add("retryPeriod", "write one such as 2s", "%s is not longer than 0", retry)
	case lease <= deadline:
		v.add("renewDeadline", "write less than "+lease.String(), "%s is not shorter than leaseDuration: a cluster must stop before another "+
			"one starts", deadline)
	case a.DNS != nil && a.DNS.Interval <= 0:
		v.add("dns.interval", "write one such as 2s", "%s is not longer than 0", time.Duration(a.DNS.Interval))
	case a.DNS != nil && deadline <= 2*time.Duration(a.DNS.Interval):
		v.add("dns.interval", fmt.Sprintf("write less than %s", deadline/2), "%s leaves no time to ask again within renewDeadline, which is %s, "+
			"if an answer is missing", time.Duration(a.DNS.Interval), deadline)
	case float64(deadline) <= retryJitter*float64(retry):
		v.add("retryPeriod", fmt.Sprintf("write less than %s", time.Duration(float64(deadline)/retryJitter)),
			"%s leaves no time to try a failed renewal again within renewDeadline, which is %s", retry, deadline)
	}
}
