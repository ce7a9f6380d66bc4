// Converts the arguments of a tool to a JSON schema, and validates them. Supports zod 4, zod 3 and plain JSON schemas.
import { z } from "./zod.mjs";

const isZod4 = (type) => Boolean(type) && typeof type === "object" && Boolean(type._zod);
const isZod3 = (type) => Boolean(type) && typeof type === "object" && !type._zod && typeof type._def?.typeName === "string";
const canCheck = (type) => (isZod4(type) || isZod3(type)) && typeof type.safeParseAsync === "function";

/** Returns the fields of `args`, which may also be an object type. */
function fields(args) {
  if (isZod4(args)) return args._zod.def.shape ?? {};
  if (isZod3(args)) return typeof args._def.shape === "function" ? args._def.shape() : {};
  return args ?? {};
}

/** Returns the JSON schema of the arguments. */
export function jsonSchema(args) {
  const shape = fields(args);
  const types = Object.values(shape);
  if (types.every(isZod4)) return zod4Schema(z.object(shape));
  const properties = {};
  const required = [];
  for (const [name, type] of Object.entries(shape)) {
    if (isZod4(type)) {
      properties[name] = zod4Schema(type);
      if (!type.safeParse(undefined).success) required.push(name);
    } else if (isZod3(type)) {
      properties[name] = zod3Schema(type, 0);
      if (!type.isOptional()) required.push(name);
    } else if (type && typeof type === "object") {
      properties[name] = type;
      required.push(name);
    }
  }
  return { type: "object", properties, required };
}

function zod4Schema(type) {
  const schema = z.toJSONSchema(type, { io: "input", unrepresentable: "any" });
  delete schema.$schema;
  addDescriptions(type, schema, 0);
  return tidy(schema);
}

/** Adds the descriptions of types that another copy of zod created, which are not in our registry. */
function addDescriptions(type, schema, depth) {
  if (!schema || typeof schema !== "object" || depth > 20 || !isZod4(type)) return;
  const def = type._zod.def;
  if (schema.description === undefined && typeof type.description === "string") schema.description = type.description;
  if (def.shape && schema.properties) {
    for (const [name, field] of Object.entries(def.shape)) addDescriptions(field, schema.properties[name], depth + 1);
  }
  if (def.innerType) addDescriptions(def.innerType, schema, depth + 1);
  if (def.element) addDescriptions(def.element, schema.items, depth + 1);
}

/** Removes the limits that zod adds to every integer. */
function tidy(schema) {
  if (Array.isArray(schema)) schema.forEach(tidy);
  else if (schema && typeof schema === "object") {
    if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
    if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
    Object.values(schema).forEach(tidy);
  }
  return schema;
}

/** Converts a zod 3 type to a JSON schema. */
function zod3Schema(type, depth) {
  const def = type?._def;
  if (!def || depth > 20) return {};
  const inner = (other) => zod3Schema(other, depth + 1);
  const schema = zod3Type(def, inner);
  const description = def.description ?? type.description;
  return description ? { ...schema, description } : schema;
}

function zod3Type(def, inner) {
  switch (def.typeName) {
    case "ZodString":
      return zod3Checks({ type: "string" }, def.checks, { min: "minLength", max: "maxLength" });
    case "ZodNumber":
      return zod3Checks({ type: "number" }, def.checks, { min: "minimum", max: "maximum" });
    case "ZodBoolean":
      return { type: "boolean" };
    case "ZodNull":
      return { type: "null" };
    case "ZodLiteral":
      return { const: def.value };
    case "ZodEnum":
      return { type: "string", enum: def.values };
    case "ZodNativeEnum":
      return { enum: Object.values(def.values).filter((value) => typeof def.values[value] !== "number") };
    case "ZodArray": {
      const schema = { type: "array", items: inner(def.type) };
      if (def.minLength) schema.minItems = def.minLength.value;
      if (def.maxLength) schema.maxItems = def.maxLength.value;
      return schema;
    }
    case "ZodTuple":
      return { type: "array", prefixItems: def.items.map(inner) };
    case "ZodObject": {
      const shape = def.shape();
      const required = Object.keys(shape).filter((name) => !shape[name].isOptional());
      const properties = Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, inner(field)]));
      return { type: "object", properties, required };
    }
    case "ZodRecord":
      return { type: "object", additionalProperties: inner(def.valueType) };
    case "ZodUnion":
    case "ZodDiscriminatedUnion":
      return { anyOf: [...(def.options.values?.() ?? def.options)].map(inner) };
    case "ZodIntersection":
      return { allOf: [inner(def.left), inner(def.right)] };
    case "ZodNullable":
      return { anyOf: [inner(def.innerType), { type: "null" }] };
    case "ZodDefault":
      return { ...inner(def.innerType), default: def.defaultValue() };
    case "ZodOptional":
    case "ZodReadonly":
    case "ZodCatch":
      return inner(def.innerType);
    case "ZodBranded":
      return inner(def.type);
    case "ZodEffects":
      return inner(def.schema);
    case "ZodPipeline":
      return inner(def.in);
    case "ZodLazy":
      return inner(def.getter());
    default:
      return {};
  }
}

function zod3Checks(schema, checks, names) {
  for (const check of checks ?? []) {
    if (check.kind === "int") schema.type = "integer";
    else if (check.kind === "regex") schema.pattern = check.regex.source;
    else if (check.kind === "email" || check.kind === "uuid") schema.format = check.kind;
    else if (check.kind === "url") schema.format = "uri";
    else if (names[check.kind]) schema[names[check.kind]] = check.value;
  }
  return schema;
}

/** Checks the arguments field by field and fills in defaults. Fields of different copies of zod may be mixed. */
export async function validate(args, given) {
  const shape = fields(args);
  const values = given && typeof given === "object" ? given : {};
  const checked = {};
  const problems = [];
  for (const [name, type] of Object.entries(shape)) {
    if (!canCheck(type)) {
      if (name in values) checked[name] = values[name];
      continue;
    }
    const result = await type.safeParseAsync(values[name]);
    if (result.success) {
      if (name in values || result.data !== undefined) checked[name] = result.data;
      continue;
    }
    for (const issue of result.error?.issues ?? [{ path: [], message: "is invalid" }]) {
      problems.push({ path: [name, ...issue.path].join("."), message: issue.message });
    }
  }
  // If a field is not a zod type, the fields do not list all arguments, so unknown ones are passed on.
  if (Object.values(shape).some((type) => !canCheck(type))) {
    for (const name of Object.keys(values)) if (!(name in checked)) checked[name] = values[name];
  }
  return { args: checked, problems: problems.slice(0, 20) };
}
