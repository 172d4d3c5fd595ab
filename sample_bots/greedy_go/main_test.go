package main

import (
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"example.org/linko-bot/linko"
)

func TestRequestsOfSeveralGamesAreAnsweredInOrderByTheRulesOfEachGame(t *testing.T) {
	ask := func(id string, number uint32) *linko.Request {
		return &linko.Request{
			GameId:     id,
			DecisionId: number,
			Kind:       linko.DecisionKind_DECISION_KIND_PLAY,
			View:       &linko.View{Tables: tables(nil, layer(13, 1, 0))},
			Legal:      plays(layer(1, 1, 0), layer(12, 1, 0)),
		}
	}
	g := games{}
	got := g.answer(&linko.RefereeMessage{
		GameStarts: []*linko.GameStart{{GameId: "a", Ruleset: expert}, {GameId: "b"}},
		Requests:   []*linko.Request{ask("b", 7), ask("a", 3)},
	})
	want := &linko.BotMessage{
		Ready: []*linko.Ready{{GameId: "a"}, {GameId: "b"}},
		Replies: []*linko.Reply{
			{GameId: "b", DecisionId: 7, Action: playOf(12, 1, 0)},
			{GameId: "a", DecisionId: 3, Action: playOf(1, 1, 0)},
		},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFinishedGameIsForgottenWithoutAnAnswer(t *testing.T) {
	g := games{"a": {}, "b": {}}
	if got := g.answer(&linko.RefereeMessage{GameEnds: []*linko.GameEnd{{GameId: "a"}}}); got != nil {
		t.Errorf("got %v, want no answer", got)
	}
	if g["a"] != nil || g["b"] == nil {
		t.Errorf("got %v, want only game b", g)
	}
}

func TestConversationBeginsWithHelloAndEndsWithGoodbye(t *testing.T) {
	stream := &fakeStream{incoming: []*linko.RefereeMessage{
		{GameStarts: []*linko.GameStart{{GameId: "a"}}},
		{Goodbye: &linko.Goodbye{}},
	}}
	if err := converse(stream, "secret"); err != nil {
		t.Error(err)
	}
	if len(stream.sent) != 2 {
		t.Fatalf("sent %v, want a hello and a ready", stream.sent)
	}
	if hello := stream.sent[0].GetHello(); hello.GetProtocolVersion() != 1 || hello.GetToken() != "secret" {
		t.Errorf("got the hello %v", hello)
	}
}

func TestStreamThatEndsWithoutGoodbyeIsAnError(t *testing.T) {
	if err := converse(&fakeStream{}, "secret"); err == nil {
		t.Error("got no error")
	}
}

// fakeStream receives the given messages, then ends, and records the messages that are sent.
type fakeStream struct {
	grpc.ClientStream
	incoming []*linko.RefereeMessage
	sent     []*linko.BotMessage
}

func (s *fakeStream) Send(message *linko.BotMessage) error {
	s.sent = append(s.sent, message)
	return nil
}

func (s *fakeStream) Recv() (*linko.RefereeMessage, error) {
	if len(s.incoming) == 0 {
		return nil, io.EOF
	}
	message := s.incoming[0]
	s.incoming = s.incoming[1:]
	return message, nil
}
