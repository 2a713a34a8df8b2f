// The client against the service at CENTILE_URL, with a server key in CENTILE_KEY and three empty boards: `main`, for the README's
// lines, `arena` and `large`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import test from "node:test";

import type { components, paths } from "centile-client";
import { exact } from "centile-client/exact";
import createClient from "openapi-fetch";

const baseUrl = process.env.CENTILE_URL ?? "";
const anyone = createClient<paths>({ baseUrl });
const server = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${process.env.CENTILE_KEY}` } });
const arena = { board: "arena" };
const large = { board: "large" };

test("scores are written and read", async () => {
  const body = { user_id: "ada", points: 50, id: "match-1" };
  const written = await server.POST("/v1/boards/{board}/scores", { params: { path: arena, query: { ranks: true } }, body });
  assert(written.data?.state === "accepted");
  assert.deepEqual(written.data.periods.all_time, { score: 50, rank: 1 });

  const events = [{ user_id: "bob/é", points: 70 }, { user_id: "", points: 1 }];
  const batch = await server.POST("/v1/boards/{board}/scores/batch", { params: { path: arena }, body: { events } });
  const [accepted, refused] = batch.data?.results ?? [];
  assert(accepted?.state === "accepted" && refused?.state === "refused");
  assert.deepEqual([refused.error.code, refused.error.field], ["invalid_value", "events[1].user_id"]);

  const top = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { from: 1, limit: 2 } } });
  assert.deepEqual(top.data?.data.map((row) => [row.rank, row.user_id]), [[1, "bob/é"], [2, "ada"]]);
  const page = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { limit: 1 } } });
  const cursor = page.data?.next_cursor;
  assert(cursor);
  const rest = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { cursor } } });
  assert.deepEqual(rest.data?.data.map((row) => [row.rank, row.user_id]), [[2, "ada"]]);
  const query = { user_id: ["ada", "nobody"] };
  const chosen = await anyone.GET("/v1/boards/{board}/scores/query", { params: { path: arena, query } });
  assert.deepEqual([chosen.data?.data[0]?.rank, chosen.data?.missing], [2, ["nobody"]]);
  const rank = await anyone.GET("/v1/boards/{board}/scores/{user_id}", { params: { path: { ...arena, user_id: "bob/é" } } });
  assert.deepEqual([rank.data?.rank, rank.data?.below[0]?.user_id], [1, "ada"]);
});

test("scores beyond 2⁵³ are exact", async () => {
  const events = [{ user_id: "max", points: Number.MAX_SAFE_INTEGER }, { user_id: "max", points: 2 }];
  await server.POST("/v1/boards/{board}/scores/batch", { params: { path: large }, body: { events } });
  const path = { ...large, user_id: "max" };
  const answer = await anyone.GET("/v1/boards/{board}/scores/{user_id}", { params: { path }, parseAs: "text" });
  assert(answer.data);
  const standing = exact<components["schemas"]["StandingResponse"]>(answer.data);
  assert.deepEqual([standing.score, standing.rank], [9007199254740993n, 1]);
});

test("errors are problem documents", async () => {
  const invalid = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { limit: 0 } } });
  assert.deepEqual([invalid.response.status, invalid.error?.field], [422, "limit"]);
  const unknown = await anyone.GET("/v1/boards/{board}", { params: { path: { board: "none" } } });
  assert.equal(unknown.error?.code, "board_not_found");
  const body = { user_id: "ada", points: 1 };
  const refused = await anyone.POST("/v1/boards/{board}/scores", { params: { path: arena }, body });
  assert.equal(refused.response.status, 401);
});

test("the lines of the README run", async () => {
  const running = spawn(process.execPath, ["build/readme.js"], { stdio: ["ignore", "pipe", "inherit"], timeout: 60_000 });
  const changed = /changed .*user_id: 'bob'.*score: 70.*user_id: 'ada'.*score: 50/s;
  let said = "";
  for await (const line of createInterface({ input: running.stdout })) {
    said += `${line}\n`;
    if (line.startsWith("started")) {
      await server.POST("/v1/boards/{board}/scores", { params: { path: { board: "main" } }, body: { user_id: "bob", points: 70 } });
    }
    if (changed.test(said)) break;
  }
  running.kill();
  assert.match(said, changed);
});
