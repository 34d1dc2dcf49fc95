// Asks Receipt Ledger what a user has, and receives its webhooks. Needs nothing but Node 18 or later; from
// 22.6 on Node runs this file as it is (--experimental-strip-types), before that `tsc` makes JavaScript of it.
//
//   RECEIPT_LEDGER_TOKEN=… node receipt-ledger.mts has http://127.0.0.1:8080 USER ENTITLEMENT
//   RECEIPT_LEDGER_WEBHOOK_SECRET=whsec_… node receipt-ledger.mts listen 9000
//
// `has` prints the entitlement and exits with 0 if the user has it now, with 1 if not, with 3 if it could not
// ask. `listen` prints each webhook.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const timeoutMs = 10_000;
// A webhook that was signed longer ago, or that much in the future, might be one that somebody sends again.
const toleranceSeconds = 300;
const bodyBytesMax = 1 << 20;

export interface Entitlement {
  name: string;
  is_active: boolean;
  /** RFC 3339; null for good. */
  until: string | null;
  reason: string;
  product_id: string | null;
  original_transaction_id: string | null;
  positions: number[];
}

export interface Webhook {
  type: string;
  timestamp: string;
  data: Record<string, string | number | boolean | null>;
}

/** What a user has in Production, by the entitlement's name; what is not in it, the user does not have. */
export async function entitlements(
  baseURL: string, token: string, user: string, attempts = 3,
): Promise<Map<string, Entitlement>> {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await fetch(new URL("/v1/entitlements", baseURL), {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ user_identifier: user }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (answer.ok) {
      const found = (await answer.json()) as { entitlements: Entitlement[] };
      return new Map(found.entitlements.map((entry) => [entry.name, entry]));
    }
    // Busy, or being started again: it says when to ask next. All else is for a person to look at.
    if (answer.status !== 503 || attempt === attempts) {
      throw new Error(`ask for entitlements: HTTP ${answer.status}`);
    }
    const seconds = Number(answer.headers.get("Retry-After") ?? 1);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

/** Whether the user has an entitlement at the moment of the answer. */
export function has(found: Map<string, Entitlement>, name: string): boolean {
  return found.get(name)?.is_active ?? false;
}

/**
 * A webhook's content. Throws unless it was signed with the secret, lately. The signature covers the bytes of
 * the body as they came: check it before anything parses them.
 */
export function verified(
  secret: string, headers: Record<string, string | string[] | undefined>, body: Uint8Array,
  nowSeconds = Date.now() / 1000,
): Webhook {
  const text = (name: string): string => String(headers[name] ?? "");
  const sent = text("webhook-timestamp");
  if (!/^[0-9]+$/.test(sent)) throw new Error("the webhook has no time");
  if (Math.abs(Number(sent) - nowSeconds) > toleranceSeconds) {
    throw new Error("the webhook was signed at another time");
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const good = createHmac("sha256", key).update(`${text("webhook-id")}.${sent}.`).update(body).digest();
  // Several while a secret is being replaced.
  const isGood = text("webhook-signature").split(" ").some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ""), "base64");
    return one.startsWith("v1,") && given.length === good.length && timingSafeEqual(given, good);
  });
  if (!isGood) throw new Error("the webhook's signature is wrong");
  return JSON.parse(Buffer.from(body).toString("utf8")) as Webhook;
}

/** Prints each webhook once. */
function listen(port: number, secret: string): void {
  // A webhook comes at least once. A real receiver keeps the ids where it keeps what it does about them.
  const seen = new Set<string>();
  createServer((request, response) => {
    const pieces: Uint8Array[] = [];
    let size = 0;
    request.on("data", (piece: Uint8Array) => {
      size += piece.length;
      if (size > bodyBytesMax) {
        response.writeHead(413).end();
        request.destroy();
      } else {
        pieces.push(piece);
      }
    });
    request.on("end", () => {
      try {
        const { type, data } = verified(secret, request.headers, Buffer.concat(pieces));
        const id = String(request.headers["webhook-id"]);
        if (!seen.has(id)) {
          const fields = ["product_id", "amount", "currency", "user_identifier"];
          console.log([type, ...fields.map((name) => data[name]).filter((value) => value != null)].join(" "));
          seen.add(id);
        }
        // Only now, when it is dealt with: whoever answers first and fails then, loses it.
        response.writeHead(204).end();
      } catch (error) {
        console.error(`refused: ${(error as Error).message}`);
        response.writeHead(401).end();
      }
    });
  }).listen(port, "127.0.0.1");
}

async function main(words: string[]): Promise<number | undefined> {
  if (words.length === 4 && words[0] === "has") {
    const found = await entitlements(words[1], process.env.RECEIPT_LEDGER_TOKEN ?? "", words[2]);
    console.log(JSON.stringify(found.get(words[3]) ?? null));
    return has(found, words[3]) ? 0 : 1;
  }
  if (words.length === 2 && words[0] === "listen") {
    listen(Number(words[1]), process.env.RECEIPT_LEDGER_WEBHOOK_SECRET ?? "");
    return undefined;
  }
  console.error("usage: receipt-ledger.mts has URL USER ENTITLEMENT | listen PORT");
  return 2;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  main(process.argv.slice(2)).then(
    (code) => {
      process.exitCode = code;
    },
    (error: Error) => {
      console.error(error.message);
      process.exitCode = 3;
    },
  );
}
