// The client against the service at CENTILE_URL, with a server key in CENTILE_KEY and two empty boards: `main`, for the README's
// lines, and `arena`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import test from "node:test";

import type { paths } from "centile-client";
import createClient from "openapi-fetch";

const baseUrl = process.env.CENTILE_URL ?? "";
const anyone = createClient<paths>({ baseUrl });
const server = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${process.env.CENTILE_KEY}` } });
const arena = { board: "arena" };

test("scores are written and read", async () => {
  const body = { user_id: "ada", points: 50, id: "match-1" };
  const written = await server.POST("/v1/boards/{board}/scores", { params: { path: arena, query: { ranks: true } }, body });
  assert(written.data && "status" in written.data && written.data.status === "accepted");
  assert.deepEqual(written.data.periods.all_time, { score: 50, rank: 1 });

  const list = [{ user_id: "bob/é", points: 70 }, { user_id: "", points: 1 }];
  const several = await server.POST("/v1/boards/{board}/scores", { params: { path: arena }, body: list });
  assert(several.data && "results" in several.data);
  const [accepted, refused] = several.data.results;
  assert(accepted?.status === "accepted" && refused?.status === "refused");
  assert.equal(refused.error.field, "[1].user_id");

  const top = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { from: 1, limit: 2 } } });
  assert.deepEqual(top.data?.scores.map((row) => [row.rank, row.user_id]), [[1, "bob/é"], [2, "ada"]]);
  const page = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { limit: 1 } } });
  assert(page.data && "next" in page.data && page.data.next);
  const cursor = page.data.next;
  const rest = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { cursor } } });
  assert.deepEqual(rest.data?.scores.map((row) => [row.rank, row.user_id]), [[2, "ada"]]);
  const chosen = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { users: ["ada", "nobody"] } } });
  assert(chosen.data && "missing" in chosen.data);
  assert.deepEqual([chosen.data.scores[0]?.rank, chosen.data.missing], [2, ["nobody"]]);
  const rank = await anyone.GET("/v1/boards/{board}/scores/{user_id}", { params: { path: { ...arena, user_id: "bob/é" } } });
  assert.deepEqual([rank.data?.rank, rank.data?.below[0]?.user_id], [1, "ada"]);
});

test("errors are problem documents", async () => {
  const invalid = await anyone.GET("/v1/boards/{board}/scores", { params: { path: arena, query: { limit: 0 } } });
  assert.deepEqual([invalid.response.status, invalid.error?.field], [422, "limit"]);
  const unknown = await anyone.GET("/v1/boards/{board}", { params: { path: { board: "none" } } });
  assert.equal(unknown.error?.type, "urn:centile:problem:not-found");
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
