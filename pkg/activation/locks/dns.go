package locks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
	"github.com/corollary-dev/corollary/pkg/leadership"
)

// dnsName is a name in DNS that says which cluster is active. Nobody can take it, so as a leadership.Store it is only
// read.
type dnsName struct {
	config   *lock.ActivationDNS
	identity string
	client   dns.Client
}

// openDNS returns a name in DNS. It sends no request.
func openDNS(f *load.ActivationFile) *dnsName {
	return &dnsName{config: f.DNS, identity: f.Identity, client: dns.Client{Timeout: RequestTimeout(f)}}
}

// Describe implements leadership.Store.
func (d *dnsName) Describe() string { return "DNS name " + d.name() }

func (d *dnsName) name() string { return d.config.Host + d.config.TXT }

// ask reports whether the name says that this cluster is active, and what it says.
func (d *dnsName) ask(ctx context.Context) (named bool, what string, err error) {
	values, err := d.resolve(ctx)
	if err != nil {
		return false, "", err
	}
	ours, err := d.ours()
	if err != nil {
		return false, "", err
	}
	other := func(v string) bool { return !slices.Contains(ours, v) }
	return len(values) > 0 && !slices.ContainsFunc(values, other), summary(values), nil
}

// ours are the values that name this cluster.
func (d *dnsName) ours() ([]string, error) {
	switch c := d.config; {
	case c.TXT != "" && c.Value != "":
		return []string{c.Value}, nil
	case c.TXT != "":
		return []string{d.identity}, nil
	case c.Interface != "":
		return addressesOf(c.Interface)
	}
	var list []string
	for _, a := range d.config.Addresses {
		address, err := netip.ParseAddr(a)
		if err != nil {
			return nil, fmt.Errorf("reading dns.addresses: %w", err)
		}
		list = append(list, address.Unmap().String())
	}
	return list, nil
}

// addressesOf are the addresses of a network interface as they are now.
func addressesOf(name string) ([]string, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("reading dns.interface %s: %w", name, err)
	}
	addresses, err := i.Addrs()
	if err != nil {
		return nil, fmt.Errorf("reading the addresses of dns.interface %s: %w", name, err)
	}
	var list []string
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, prefix.Addr().Unmap().String())
		}
	}
	return list, nil
}

// maxNamed is how many values are written out.
const maxNamed = 10

// summary writes values as one, for people.
func summary(values []string) string {
	if len(values) == 0 {
		return "nothing"
	}
	more := ""
	if len(values) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(values)-maxNamed)
		values = values[:maxNamed]
	}
	return strings.Join(values, ", ") + more
}

// resolve asks what the name says: addresses, or texts, sorted. A name that does not exist says nothing.
func (d *dnsName) resolve(ctx context.Context) ([]string, error) {
	types := []uint16{dns.TypeA, dns.TypeAAAA}
	if d.config.TXT != "" {
		types = []uint16{dns.TypeTXT}
	}
	var values []string
	for _, t := range types {
		answer, err := d.query(ctx, t)
		if err != nil {
			return nil, err
		}
		for _, r := range answer.Answer {
			switch r := r.(type) {
			case *dns.A:
				if address, ok := netip.AddrFromSlice(r.A); ok {
					values = append(values, address.Unmap().String())
				}
			case *dns.AAAA:
				if address, ok := netip.AddrFromSlice(r.AAAA); ok {
					values = append(values, address.Unmap().String())
				}
			case *dns.TXT:
				values = append(values, strings.Join(r.Txt, ""))
			}
		}
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}

// query asks the resolvers in turn, until one answers.
func (d *dnsName) query(ctx context.Context, t uint16) (*dns.Msg, error) {
	resolvers, err := d.resolvers()
	if err != nil {
		return nil, err
	}
	question := new(dns.Msg).SetQuestion(dns.Fqdn(d.name()), t)
	question.SetEdns0(dns.DefaultMsgSize, false)
	var errs []error
	for i, resolver := range resolvers {
		answer, err := d.exchange(ctx, question, resolver, len(resolvers)-i)
		if err == nil {
			return answer, nil
		}
		errs = append(errs, fmt.Errorf("asking %s for %s %s: %w", resolver, dns.TypeToString[t], d.name(), err))
	}
	return nil, errors.Join(errs...)
}

// exchange asks one resolver, which has its share of the time where others are to be asked after it. An answer that is
// too long for a datagram is asked for by TCP.
func (d *dnsName) exchange(ctx context.Context, question *dns.Msg, resolver string, share int) (*dns.Msg, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(share))
		defer cancel()
	}
	answer, _, err := d.client.ExchangeContext(ctx, question, resolver)
	if err == nil && answer.Truncated {
		stream := d.client
		stream.Net = "tcp"
		answer, _, err = stream.ExchangeContext(ctx, question, resolver)
	}
	switch {
	case err != nil:
		return nil, err
	case answer.Rcode != dns.RcodeSuccess && answer.Rcode != dns.RcodeNameError:
		return nil, fmt.Errorf("it answered %s", dns.RcodeToString[answer.Rcode])
	}
	return answer, nil
}

// resolvers are those to ask, as HOST:PORT.
func (d *dnsName) resolvers() ([]string, error) {
	if d.config.Resolver != "" {
		return []string{d.config.Resolver}, nil
	}
	system, err := dns.ClientConfigFromFile("/etc/resolv.conf")
	if err != nil {
		return nil, fmt.Errorf("finding a resolver: set dns.resolver: %w", err)
	}
	if len(system.Servers) == 0 {
		return nil, errors.New("finding a resolver: /etc/resolv.conf names none: set dns.resolver")
	}
	var list []string
	for _, server := range system.Servers {
		list = append(list, net.JoinHostPort(server, system.Port))
	}
	return list, nil
}

// Get implements leadership.Store. The record has no token and no times.
func (d *dnsName) Get(ctx context.Context) (*leadership.Record, error) {
	values, err := d.resolve(ctx)
	if err != nil || len(values) == 0 {
		return &leadership.Record{LeaderTransitions: int(leadership.NoToken)}, err
	}
	return &leadership.Record{HolderIdentity: summary(values), LeaderTransitions: int(leadership.NoToken)}, nil
}

// ErrDecidedByDNS says that no command changes which cluster is active.
var ErrDecidedByDNS = errors.New("the name decides which cluster is active: change it in DNS")

// Create implements leadership.Store.
func (d *dnsName) Create(context.Context, *leadership.Record) error { return ErrDecidedByDNS }

// Update implements leadership.Store.
func (d *dnsName) Update(context.Context, *leadership.Record) error { return ErrDecidedByDNS }

// Watch implements leadership.Store.
func (d *dnsName) Watch(context.Context, func(*leadership.Record) bool) error {
	return leadership.ErrUnwatched
}

// LeastToken implements leadership.Store.
func (d *dnsName) LeastToken() leadership.Token { return leadership.NoToken }

// LastToken implements leadership.Store.
func (d *dnsName) LastToken() leadership.Token { return lastToken }
