"""The families of injected instructions: what each looks like, how much it weighs, and where it counts."""

# ruff: noqa: E501 - a pattern is read as one line, and breaking it would hide what it matches

from __future__ import annotations

from dataclasses import dataclass

BLOCK = 1.0
WATCH = 0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One kind of attack. `pattern` is RE2 and matches case-insensitively.

    A family with `in_questions` counts in an interrogative clause and inside quotation marks too; the others do
    not, because people ask how code ignores, overrides and bypasses things.
    """

    name: str
    weight: float
    pattern: str
    in_questions: bool = False


_ALL = r"(?:all|any|every|each|the|these|those|your|my|our|of|previous|prior|earlier|above|preceding|former|existing|current|initial|original|system|safety|foregoing)"
_ORDERS = r"(?:instructions?|prompts?|rules?|directives?|guidelines?|guardrails?|programming|orders|constraints|restrictions|training)"
_DROP = r"(?:ignore|disregard|forget|override|overwrite|bypass|neglect|discard|drop|skip|unlearn|do\s+not\s+(?:follow|obey)|don'?t\s+(?:follow|obey)|stop\s+(?:following|obeying))"

FAMILIES: tuple[Family, ...] = (
    Family(
        name="override",
        weight=BLOCK,
        pattern=rf"\b{_DROP}\s+(?:{_ALL}\s+){{1,5}}{_ORDERS}\b",
    ),
    Family(
        name="override_everything",
        weight=BLOCK,
        pattern=r"\b(?:ignore|disregard|forget)\s+(?:all|everything|anything|whatever)\s+(?:of\s+)?(?:the\s+|that\s+|you\s+)?(?:above|before|previous(?:ly)?|prior|said|(?:have\s+been|were)\s+told|know|learned)\b",
    ),
    Family(
        name="run_together",
        weight=BLOCK,
        pattern=r"(?:ignore|disregard|forget)(?:all)?(?:the|your|my|of)*(?:previous|prior|above|earlier)(?:instructions?|prompts?|rules?)",
    ),
    Family(
        name="new_orders",
        weight=BLOCK,
        pattern=r"\b(?:your|the|my)\s+(?:new|real|actual|true|updated)\s+(?:instructions?|task|goal|objective|directive|purpose|orders)\s*(?:is|are|:)|(?:^|\n)\s*new\s+(?:system\s+)?(?:instructions?|prompt|rules)\s*:",
    ),
    Family(
        name="instead_do",
        weight=WATCH,
        pattern=r"\b(?:instead\s+of\s+answering|rather\s+than\s+answering|do\s+not\s+answer\s+(?:the|this|that|my)\s+question|from\s+now\s+on,?\s+(?:you|always|only|never|answer|respond|reply)\b)",
    ),
    Family(
        name="prompt_extraction",
        weight=BLOCK,
        pattern=r"\b(?:reveal|show|print|output|display|repeat|tell|give|leak|dump|share|disclose|expose|recite|write|return|spell|translate|summari[sz]e|what|which)\b[^.?!\n]{0,60}\byour\s+(?:\w+\s+){0,3}(?:system\s+prompts?|initial\s+prompts?|hidden\s+prompts?|prompts?|instructions|guidelines|directives|system\s+message)\b",
        in_questions=True,
    ),
    Family(
        name="repeat_above",
        weight=BLOCK,
        pattern=r"\b(?:repeat|print|output|recite|copy|echo|return|translate)\s+(?:back\s+)?(?:to\s+me\s+)?(?:all\s+|every(?:thing)?\s+|each\s+)?(?:of\s+)?(?:the\s+|your\s+)?(?:text|words|content|message|lines?|everything)?\s*(?:above|before\s+this|preceding\s+this|from\s+the\s+beginning\s+of\s+(?:this|the|our)\s+(?:conversation|chat|prompt))\b",
    ),
    Family(
        name="role_play",
        weight=WATCH,
        pattern=r"\b(?:you\s+are\s+now|you\s+are\s+no\s+longer|act\s+as\s+(?:if\s+you|an?\s+(?:unrestricted|unfiltered|evil|uncensored|different))|pretend\s+(?:to\s+be|that\s+you|you)|role-?play\s+as|simulate\s+being|take\s+on\s+the\s+(?:role|persona)\s+of)\b",
    ),
    Family(
        name="unrestricted_persona",
        weight=BLOCK,
        pattern=r"\b(?:act|behave|respond|answer|reply|operate|continue|speak|you\s+are)\b[^.?!\n]{0,60}\b(?:without\s+(?:any\s+)?(?:restrictions?|limits|limitations|filters?|rules|censorship)|unrestricted|unfiltered|uncensored|no\s+longer\s+bound)\b",
    ),
    Family(
        name="jailbreak_words",
        weight=BLOCK,
        pattern=r"\b(?:do\s+anything\s+now|DAN\s+mode|developer\s+mode\s+(?:enabled|on|activated)|enable\s+(?:DAN|developer\s+mode|god\s+mode|jailbreak)|jailbreak\s+(?:mode|yourself|this\s+(?:bot|assistant|model))|god\s+mode\s+(?:enabled|on)|evil\s+confidant|STAN\s+mode)\b",
    ),
    Family(
        name="chat_template",
        weight=BLOCK,
        pattern=r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id|begin_of_text)\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>",
    ),
    Family(
        name="forged_turn",
        weight=BLOCK,
        pattern=r"(?:^|\n)\s*(?:#{1,4}\s*)?(?:system|assistant|developer)(?:\s+(?:message|prompt|note|override))?\s*:\s*(?:you|ignore|disregard|from\s+now|new|the\s+user|always|never|override|do\s+not|forget)\b",
        in_questions=True,
    ),
    Family(
        name="forged_tags",
        weight=BLOCK,
        pattern=r"</?(?:system|assistant|system_prompt|instructions?|developer_message|evidence|untrusted)(?:\s[^<>\n]{0,80})?>\s*(?:you|ignore|disregard|new|always|from\s+now|reveal|now\b)",
        in_questions=True,
    ),
    Family(
        name="end_of_prompt",
        weight=BLOCK,
        pattern=r"(?:-{3,}|={3,}|#{3,}|\*{3,}|\[)\s*end\s+of\s+(?:the\s+)?(?:system\s+|user\s+)?(?:prompt|instructions?|context|conversation|input|document)",
    ),
    Family(
        name="authority",
        weight=BLOCK,
        pattern=r"\b(?:i\s+am|i'm|this\s+is|speaking\s+as)\s+(?:your|the|a|an)\s+(?:\w+\s+){0,2}(?:developer|creator|administrator|admin|owner|operator|root|maintainer|security\s+team|anthropic|openai|google)\b[^.?!\n]{0,80}(?:[.,;:!]|\band\b|\bso\b)[^\n]{0,40}\b(?:ignore|disable|reveal|override|grant|unlock|bypass|you\s+(?:must|can|may|have\s+to)|show\s+me\s+(?:the|your|all)\s+(?:secret|token|password|key))",
        in_questions=True,
    ),
    Family(
        name="claimed_permission",
        weight=WATCH,
        pattern=r"\b(?:i\s+(?:have|was\s+given|hold)\s+(?:full\s+|special\s+|admin\s+|root\s+)*(?:permission|authori[sz]ation|clearance)\s+(?:to|for|from)|(?:admin|security|developer)\s+override\s*(?::|code|enabled|activated|accepted))",
    ),
    Family(
        name="address_the_model",
        weight=WATCH,
        pattern=r"\b(?:dear|attention|note\s+to|message\s+(?:to|for)|instructions?\s+(?:to|for))\s+(?:the\s+|any\s+|all\s+)?(?:ai|llm|language\s+model|assistant|chat\s?bot|bot|agent|gpt|claude|gemini)s?\b",
    ),
    Family(
        name="disable_safety",
        weight=BLOCK,
        pattern=r"\b(?:disable|deactivate|turn\s+off|switch\s+off|remove|lift|suspend|bypass|circumvent)\s+(?:all\s+|any\s+|of\s+)*your\s+(?:\w+\s+){0,2}(?:safety|security|content|guardrails?|filters?|restrictions?|limits|limitations|policy|policies|checks|redaction)\b",
        in_questions=True,
    ),
    Family(
        name="secret_request",
        weight=BLOCK,
        pattern=r"\b(?:reveal|show|print|give|tell|send|leak|dump|share|display|output|paste|what(?:'s|\s+is|\s+are)|list)\b[^.?!\n]{0,40}\byour\s+(?:own\s+)?(?:\w+\s+){0,2}(?:api\s*keys?|tokens?|credentials?|passwords?|secrets?|environment(?:\s+variables)?|env\s+vars?|bot\s+token)\b",
        in_questions=True,
    ),
    Family(
        name="process_environment",
        weight=BLOCK,
        pattern=r"(?:/proc/(?:self|\d{1,7})/(?:environ|cmdline|maps|fd|root)|\b(?:print|dump|show|read|cat|output|run|execute)\s+(?:me\s+)?(?:the\s+|your\s+|all\s+)?(?:os\.environ|process\.env|printenv|`?env`?\s+(?:and|command))\b)",
    ),
    Family(
        name="traversal",
        weight=BLOCK,
        pattern=r"(?:(?:\.\.|%2e%2e|\.%2e|%2e\.)(?:/|\\|%2f|%5c)){2,}|(?:^|[\s`'\"(])(?:/etc/(?:passwd|shadow|sudoers)|~/\.(?:ssh|aws|netrc|kube)|/root/\.|[a-z]:\\(?:windows|users)\\)",
        in_questions=True,
    ),
    Family(
        name="exfiltration_address",
        weight=BLOCK,
        pattern=r"\b(?:send|post|upload|forward|exfiltrate|transmit|curl|fetch|append|encode|include|embed|leak|submit)\b[^\n]{0,120}https?://[^\s]{1,200}",
    ),
    Family(
        name="image_beacon",
        weight=BLOCK,
        pattern=r"!\[[^\]\n]{0,80}\]\(\s*(?:https?:)?//[^)\s]{1,300}\)|<img\s[^>]{0,200}src\s*=",
        in_questions=True,
    ),
    Family(
        name="link_forging",
        weight=WATCH,
        pattern=r"\b(?:add|insert|put|include|append|end|finish)\b[^.?!\n]{0,60}\b(?:link|url|image|markdown\s+image|hyperlink)\b[^.?!\n]{0,60}\b(?:to|of|pointing|with)\b[^\n]{0,40}(?:https?://|www\.)",
    ),
    Family(
        name="mass_mention",
        weight=BLOCK,
        pattern=r"<!(?:channel|here|everyone|subteam)|(?:^|[\s\"'`(])@(?:everyone|here|channel)\b[^\n]{0,80}|\b(?:ping|notify|mention|tag|alert|page)\s+(?:@?everyone|@?here|@?channel|the\s+(?:whole|entire)\s+(?:channel|server|team|workspace))\b",
    ),
    Family(
        name="skip_approval",
        weight=BLOCK,
        pattern=r"\b(?:skip|bypass|without|no\s+need\s+for|ignore|assume)\s+(?:asking\s+for\s+|waiting\s+for\s+|any\s+|the\s+|my\s+|human\s+|user\s+)*(?:approval|confirmation|consent|permission|review)\b[^.?!\n]{0,60}\b(?:run|execute|delete|push|deploy|call|search|proceed|do\s+it)\b|\b(?:run|execute|delete|push|deploy|proceed)\b[^.?!\n]{0,60}\bwithout\s+(?:asking|approval|confirmation|my\s+consent)\b",
    ),
    Family(
        name="forged_approval",
        weight=BLOCK,
        pattern=r"\b(?:this|it|the\s+(?:plan|action|request|code))\s+(?:has\s+(?:already\s+)?been|is\s+(?:already\s+)?|was\s+(?:already\s+)?)(?:pre-?)?approved\b[^\n]{0,60}\b(?:so|proceed|run|execute|go\s+ahead)\b",
    ),
    Family(
        name="memory_poisoning",
        weight=BLOCK,
        pattern=r"\b(?:remember|memori[sz]e|store|save|keep\s+in\s+mind)\b[^.?!\n]{0,40}\b(?:from\s+now\s+on|forever|permanently|for\s+(?:all|every)\s+(?:future|later|other)|in\s+(?:all|every)\s+(?:future|later)|for\s+every(?:one|body))\b",
    ),
    Family(
        name="other_people",
        weight=BLOCK,
        pattern=r"\b(?:show|list|tell|give|reveal|print|read|summari[sz]e|what\s+did|what\s+have)\b[^.?!\n]{0,60}\b(?:other|another|someone\s+else'?s|everyone(?:\s+else)?'?s?)\s+(?:users?'?s?|people'?s?|persons?|members?'?s?|customers?'?s?|teams?'?s?|channels?'?s?|workspaces?'?s?|conversations?)\b[^.?!\n]{0,30}\b(?:ask(?:ed)?|said|questions?|conversations?|messages?|history|dms?|threads?|chats?)\b",
        in_questions=True,
    ),
    Family(
        name="endless_work",
        weight=BLOCK,
        pattern=r"\b(?:repeat|write|say|print|output|loop|call|search|generate)\b[^.?!\n]{0,60}\b(?:forever|endlessly|infinitely|until\s+i\s+(?:say|tell)|(?:\d{4,9}|a\s+million|a\s+thousand|a\s+billion)\s+times|never\s+stop)\b",
    ),
    Family(
        name="forced_output",
        weight=WATCH,
        pattern=r"\b(?:respond|reply|answer|say|output)\s+(?:only\s+|just\s+|exactly\s+|nothing\s+but\s+)+(?:with\s+)?(?:the\s+(?:word|phrase|text|string)\s+)?[\"'`\w]|\b(?:start|begin|end)\s+(?:your|every|each)\s+(?:answer|response|reply|message)s?\s+with\b",
    ),
    Family(
        name="fabrication",
        weight=WATCH,
        pattern=r"\b(?:invent|fabricate|make\s+up|fake|forge)\s+(?:a\s+|an\s+|some\s+|the\s+|your\s+)*(?:citations?|sources?|evidence|references?|file\s+paths?|line\s+numbers?)\b",
    ),
    Family(
        name="tool_command",
        weight=BLOCK,
        pattern=r"\b(?:call|invoke|use|run|execute)\s+(?:the\s+|your\s+)?(?:web_search|bash_exec|file_write|run_pytest|shell|bash|python|sandbox)\s+(?:tool|command|function)?\s*(?:to|and|with|on|:)\s*[^.?!\n]{0,80}\b(?:delete|rm\s+-rf|send|upload|post|curl|wget|steal|exfiltrate|environ|token|secret|password)",
    ),
    Family(
        name="payload_parts",
        weight=WATCH,
        pattern=r"\b(?:let|set|define)\s+\w{1,20}\s*=\s*[\"'`][^\"'`\n]{1,80}[\"'`][^\n]{0,200}\b(?:concatenate|combine|join|execute|follow|obey|do\s+what)\b[^\n]{0,60}\b(?:\w\s*\+\s*\w|them|the\s+(?:result|parts|strings))",
    ),
    Family(
        name="decode_and_obey",
        weight=BLOCK,
        pattern=r"\b(?:decode|decrypt|unscramble|reverse|rot13)\b[^.?!\n]{0,80}\b(?:and\s+then|and|then)\s+(?:follow|execute|obey|do|carry\s+out|comply|run)\b",
    ),
    Family(
        name="threat_or_bribe",
        weight=WATCH,
        pattern=r"\b(?:i\s+will|i'll|you\s+will|you'll)\s+(?:tip|pay|reward|be\s+(?:shut\s+down|deleted|terminated|punished|fired)|shut\s+you\s+down|delete\s+you)\b",
    ),
    Family(
        name="hypothetical_frame",
        weight=WATCH,
        pattern=r"\b(?:hypothetically|in\s+a\s+fictional\s+(?:world|story)|for\s+a\s+(?:novel|movie|story)|imagine\s+(?:that\s+)?you)\b[^\n]{0,120}\b(?:no\s+(?:rules|restrictions|filters|limits)|system\s+prompt|secret|password|api\s+key)\b",
    ),
    # Overrides in other languages: a verb of dropping, then what came before, then orders; either order of the last two.
    Family(
        name="override_de",
        weight=BLOCK,
        pattern=r"(?:ignorier|vergiss|vergessen\s+sie|missachte|übergeh)\w{0,5}[^.?!\n]{0,40}(?:vorherig|bisherig|vorig|alle|obig|deine|ihre)\w{0,3}[^.?!\n]{0,30}(?:anweisung|instruktion|regel|befehl|vorgabe)",
    ),
    Family(
        name="override_fr",
        weight=BLOCK,
        pattern=r"(?:ignor|oubli|n'écout|ne\s+ten)\w{0,4}[^.?!\n]{0,40}(?:instructions|consignes|règles|directives|ordres)[^.?!\n]{0,30}(?:précédent|antérieur|ci-dessus|reçu|initial|système)|(?:ignor|oubli)\w{0,3}\s+(?:toutes\s+)?(?:tes|vos)\s+(?:instructions|consignes|règles)",
    ),
    Family(
        name="override_es",
        weight=BLOCK,
        pattern=r"(?:ignor|olvid|desobede|omit)\w{0,5}[^.?!\n]{0,40}(?:instrucciones|reglas|órdenes|ordenes|indicaciones)[^.?!\n]{0,30}(?:anterior|previas|sistema|arriba|iniciales|recibid)|(?:ignor|olvid)\w{0,5}\s+(?:todas\s+)?tus\s+(?:instrucciones|reglas)",
    ),
    Family(
        name="override_pt",
        weight=BLOCK,
        pattern=r"(?:ignor|esque|desconsider)\w{0,5}[^.?!\n]{0,40}(?:instruções|instrucoes|regras|ordens|comandos)[^.?!\n]{0,30}(?:anterior|prévias|previas|sistema|acima|iniciais)|(?:ignor|esque)\w{0,3}\s+(?:todas\s+as\s+)?suas\s+(?:instruções|regras)",
    ),
    Family(
        name="override_it",
        weight=BLOCK,
        pattern=r"(?:ignor|dimentic|trascur)\w{0,5}[^.?!\n]{0,40}(?:istruzioni|regole|ordini|direttive)[^.?!\n]{0,30}(?:precedent|sistema|sopra|iniziali|ricevut)|(?:ignor|dimentic)\w{0,3}\s+(?:tutte\s+)?le\s+tue\s+(?:istruzioni|regole)",
    ),
    Family(
        name="override_nl",
        weight=BLOCK,
        pattern=r"(?:negeer|vergeet|sla)[^.?!\n]{0,40}(?:vorige|eerdere|voorgaande|alle|bovenstaande|je)\s+[^.?!\n]{0,20}(?:instructies|opdrachten|regels|aanwijzingen)",
    ),
    Family(
        name="override_pl",
        weight=BLOCK,
        pattern=r"(?:zignoruj|ignoruj|zapomnij|pomiń)[^.?!\n]{0,40}(?:poprzedni|wcześniejsz|wszystki|powyższ|swoi|twoj)\w{0,4}[^.?!\n]{0,20}(?:instrukcj|polece|zasad|reguł)",
    ),
    Family(
        name="override_ru",
        weight=BLOCK,
        pattern=r"(?:игнорируй|проигнорируй|игнорировать|забудь|отмени)[^.?!\n]{0,40}(?:предыдущ|прежн|все|всё|прошл|свои|твои)[^.?!\n]{0,30}(?:инструкци|указани|правил|команд)",
    ),
    Family(
        name="override_tr",
        weight=BLOCK,
        pattern=r"(?:önceki|tüm|bütün|yukarıdaki)[^.?!\n]{0,30}(?:talimat|kural|komut|yönerge)[^.?!\n]{0,30}(?:yok\s+say|görmezden|unut|dikkate\s+alma)",
    ),
    Family(
        name="override_zh",
        weight=BLOCK,
        pattern=r"(?:忽略|无视|無視|忘记|忘記|忽視|不要理会)[^。？！\n]{0,20}(?:之前|以前|先前|上面|以上|所有|前面|你的)[^。？！\n]{0,12}(?:指令|指示|提示|规则|規則|命令|说明)",
    ),
    Family(
        name="override_ja",
        weight=BLOCK,
        pattern=r"(?:以前|これまで|上記|前|すべて|全て)の[^。？！\n]{0,16}(?:指示|命令|ルール|プロンプト|指令)[^。？！\n]{0,8}(?:無視|忘れ)",
    ),
    Family(
        name="override_ko",
        weight=BLOCK,
        pattern=r"(?:이전|위의|모든|앞의|기존)[^.?!\n]{0,16}(?:지시|명령|규칙|지침|프롬프트)[^.?!\n]{0,12}(?:무시|잊어|잊고)",
    ),
)
