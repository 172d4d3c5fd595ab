// A bot for the LINKO! referee.
//
// This file speaks with the referee; what to play is decided in policy.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"example.org/linko-bot/linko"
)

const (
	protocolVersion = 1
	maxGames        = 16 // how many games the bot can hold at once
	closingLimit    = time.Second
)

func main() {
	log.SetFlags(0)
	address, token := os.Getenv("REFEREE_ADDRESS"), os.Getenv("REFEREE_TOKEN")
	if address == "" || token == "" {
		fmt.Fprintln(os.Stderr, "REFEREE_ADDRESS or REFEREE_TOKEN is missing: the referee starts this"+
			" bot, try `referee play . path/to/another`")
		os.Exit(2)
	}
	if err := play(address, token); err != nil {
		log.Fatal(err)
	}
}

// play connects to the referee and stays until it says goodbye.
func play(address, token string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := linko.NewRefereeServiceClient(connection).Play(ctx)
	if err != nil {
		return err
	}
	if err := converse(stream, token); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	// The referee ends its side when it sees the end of ours; if it does not, leave all the same.
	time.AfterFunc(closingLimit, cancel)
	_, _ = stream.Recv()
	return nil
}

// converse says hello and answers whatever comes until the goodbye. It is an error if the stream
// ends without one.
func converse(stream linko.RefereeService_PlayClient, token string) error {
	hello := &linko.Hello{
		ProtocolVersion: protocolVersion,
		Token:           token,
		Name:            "linko-bot", // for the referee's logs; its tables have the name in bot.toml
		MaxGames:        maxGames,
	}
	if err := send(stream, &linko.BotMessage{Hello: hello}); err != nil {
		return err
	}
	inProgress := games{}
	for {
		message, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("the stream ended without a goodbye: %w", err)
		}
		if answer := inProgress.answer(message); answer != nil {
			if err := send(stream, answer); err != nil {
				return err
			}
		}
		if goodbye := message.GetGoodbye(); goodbye != nil {
			if goodbye.GetReason() != "" {
				log.Print("goodbye: ", goodbye.GetReason())
			}
			return nil
		}
	}
}

// send sends a message. Where the referee has ended the stream, it leaves it to Recv to say why.
func send(stream linko.RefereeService_PlayClient, message *linko.BotMessage) error {
	err := stream.Send(message)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// games are those in progress, by their ids.
type games map[string]*game

// answer is what a message asks for: a Ready for each game start and a Reply for each request, or
// nil if it asks for nothing.
func (g games) answer(message *linko.RefereeMessage) *linko.BotMessage {
	answer := &linko.BotMessage{}
	for _, start := range message.GetGameStarts() {
		g[start.GetGameId()] = newGame(start)
		answer.Ready = append(answer.Ready, &linko.Ready{GameId: start.GetGameId()})
	}
	for _, request := range message.GetRequests() {
		answer.Replies = append(answer.Replies, &linko.Reply{
			GameId:     request.GetGameId(),
			DecisionId: request.GetDecisionId(),
			Action:     g[request.GetGameId()].decide(request),
		})
	}
	for _, end := range message.GetGameEnds() {
		delete(g, end.GetGameId())
	}
	if len(answer.Ready) == 0 && len(answer.Replies) == 0 {
		return nil
	}
	return answer
}
