package locks

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/nameserver"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/config/lock"
)

// dnsFile is an activation by a name in DNS.
func dnsFile(d lock.ActivationDNS) *load.ActivationFile {
	f := &load.ActivationFile{}
	f.DNS, f.Identity, f.RenewDeadline = &d, "cluster-eu-1", common.Duration(time.Hour)
	return f
}

// TestDNS: which answers of a real name server name this cluster.
func TestDNS(t *testing.T) {
	server := nameserver.Start(t)
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf("10.1.%d.%d", i/250, i%250+1)
	}
	host := lock.ActivationDNS{Host: "active.example.com", Addresses: []string{"10.0.0.1", "10.0.0.2", "2001:db8::1"}}
	text := lock.ActivationDNS{TXT: "_active.example.com"}
	tests := []struct {
		config  lock.ActivationDNS
		answers []string
		named   bool
		what    string
		reason  string
	}{
		{host, []string{"10.0.0.1"}, true, "10.0.0.1", "one of its addresses"},
		{host, []string{"10.0.0.2", "10.0.0.1"}, true, "10.0.0.1, 10.0.0.2", "several"},
		{host, []string{"2001:DB8:0::1"}, true, "2001:db8::1", "one of version 6"},
		{host, []string{"10.0.0.1", "10.0.0.9"}, false, "10.0.0.1, 10.0.0.9", "one more, of another cluster"},
		{host, []string{"10.0.0.1", "2001:db8::9"}, false, "10.0.0.1, 2001:db8::9", "another one in version 6 alone"},
		{host, []string{"10.0.0.9"}, false, "10.0.0.9", "another cluster"},
		{host, nil, false, "nothing", "no such name"},
		{host, many[:10], false, strings.Join(sorted(many[:10]), ", "), "ten addresses"},
		{host, many, false, strings.Join(sorted(many)[:10], ", ") + " and 290 more", "an answer that fits no datagram"},
		{lock.ActivationDNS{Host: "a.example.com", Addresses: many}, many, true, strings.Join(sorted(many)[:10], ", ") + " and 290 more",
			"the same, all ours"},
		{lock.ActivationDNS{Host: "a.example.com", Interface: loopback(t)}, []string{"127.0.0.1"}, true, "127.0.0.1",
			"the address of an interface"},
		{lock.ActivationDNS{Host: "a.example.com", Interface: loopback(t)}, []string{"10.0.0.1"}, false, "10.0.0.1",
			"not that of the interface"},
		{text, []string{"cluster-eu-1"}, true, "cluster-eu-1", "the identity"},
		{text, []string{"cluster-us-1"}, false, "cluster-us-1", "another one"},
		{text, []string{"cluster-eu-1", "cluster-us-1"}, false, "cluster-eu-1, cluster-us-1", "both"},
		{lock.ActivationDNS{TXT: "a.example.com", Value: strings.Repeat("x", 300)}, []string{strings.Repeat("x", 300)}, true,
			strings.Repeat("x", 300), "a text of two strings"},
	}
	for _, test := range tests {
		server.Say(test.answers...)
		test.config.Resolver = server.Addr
		named, what, err := openDNS(dnsFile(test.config)).ask(t.Context())
		if err != nil || named != test.named || what != test.what {
			t.Errorf("%s: named %t, %q, %v", test.reason, named, what, err)
		}
	}
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func loopback(t *testing.T) string {
	t.Helper()
	list := must.Get(net.Interfaces()).In(t)
	for _, i := range list {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	t.Fatal("there is no loopback interface")
	return ""
}

// TestDNSTroubles: without an answer there is an error, which says who was asked.
func TestDNSTroubles(t *testing.T) {
	server := nameserver.Start(t)
	f := dnsFile(lock.ActivationDNS{Host: "active.example.com", Addresses: []string{"10.0.0.1"}, Resolver: server.Addr})
	for _, test := range []struct {
		begin  func()
		change func()
		want   string
	}{
		{func() { server.Fail(dns.RcodeServerFailure) }, nil, "asking " + server.Addr + " for A active.example.com: it answered SERVFAIL"},
		{func() { server.Fail(dns.RcodeRefused) }, nil, "it answered REFUSED"},
		{server.Hush, func() { f.RenewDeadline = 0 }, "i/o timeout"},
		{func() { server.Say("10.0.0.1") }, func() { f.DNS.Addresses, f.DNS.Interface = nil, "none0" }, "dns.interface none0"},
	} {
		test.begin()
		if test.change != nil {
			test.change()
		}
		if _, _, err := openDNS(f).ask(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("it returns %v, not %q", err, test.want)
		}
	}
}
