// Package linko has the messages of the referee and the client of its service. They are generated
// from the schema in ../proto and committed. After a change of the schema, run `go generate ./...`. It
// uses the plugins that go.mod names and the protoc in PATH.
package linko

//go:generate go build -o ../.tools/ tool
//go:generate -command stubs protoc -I ../proto --plugin=../.tools/protoc-gen-go --plugin=../.tools/protoc-gen-go-grpc
//go:generate stubs --go_out=. --go_opt=module=example.org/linko-bot/linko,Mlinko/v1/play.proto=example.org/linko-bot/linko,Mlinko/v1/table.proto=example.org/linko-bot/linko linko/v1/play.proto linko/v1/table.proto
//go:generate stubs --go-grpc_out=. --go-grpc_opt=module=example.org/linko-bot/linko,Mlinko/v1/play.proto=example.org/linko-bot/linko,Mlinko/v1/table.proto=example.org/linko-bot/linko linko/v1/play.proto
