// The style sheet of a page: light, dark and printed. The page's policy allows exactly these bytes.
import Base

/// The style sheet and its hash.
package enum PageStyle {
  /// The source expression for the page's Content-Security-Policy.
  package static var source: String {
    var text = sheet.description
    let digest = text.withUTF8 { SHA256.hash(UnsafeRawBufferPointer($0)) }
    return "sha256-" + Base64.text(digest.bytes)
  }

  package static let sheet: StaticString = """
    :root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#59626d;--rule:#e2e5e9;--wash:#f5f6f8;
    --accent:#0a5f73;--quiet:#6b9ba7;--minus:#a8321a;--bar:#3c8799}
    @media (prefers-color-scheme:dark){:root{--paper:#13161a;--ink:#e7e9ec;--soft:#a4adb8;--rule:#2c323a;
    --wash:#1b1f25;--accent:#6cc7d9;--quiet:#457380;--minus:#f4967c;--bar:#4ea3b5}}
    *{box-sizing:border-box}
    html{font-size:100%;-webkit-text-size-adjust:100%;text-size-adjust:100%}
    body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,
    "Helvetica Neue",Arial,"Noto Sans",sans-serif;overflow-wrap:break-word}
    header,main,nav{max-width:76rem;margin:0 auto;padding:0 1.5rem}
    header{padding-top:3.5rem}main{padding-bottom:4rem}
    h1{margin:.15rem 0 .5rem;font-size:clamp(1.9rem,1.4rem + 2vw,2.9rem);line-height:1.1;font-weight:650;
    letter-spacing:-.022em;text-wrap:balance}
    h2{margin:0 0 .3rem;font-size:1.35rem;line-height:1.25;font-weight:640;letter-spacing:-.012em}
    h3{margin:0 0 .4rem;font-size:1rem;line-height:1.35;font-weight:640}
    p{margin:.3rem 0 .9rem;max-width:44rem}
    a{color:var(--accent);text-underline-offset:.18em;text-decoration-thickness:.06em}
    :focus-visible{outline:2px solid var(--accent);outline-offset:3px;border-radius:2px}
    .origin{margin:0;color:var(--accent);font-weight:600;font-size:.92rem}
    .lead{color:var(--soft);margin:0}
    .note{margin:1.1rem 0 0;padding:.1rem 0 .1rem .9rem;border-left:3px solid var(--accent);max-width:44rem}
    .soft,.meaning{color:var(--soft)}
    .skip{position:absolute;left:-200vw}
    .skip:focus{left:1rem;top:1rem;padding:.5rem .8rem;background:var(--paper);z-index:1}
    nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.35rem 1.25rem;margin:1.8rem 0 0;padding:.8rem 0;
    border-top:1px solid var(--rule);border-bottom:1px solid var(--rule);font-size:.92rem}
    nav a{text-decoration:none}
    nav a:hover{text-decoration:underline}
    section{padding:2.4rem 0 0}
    section+section{border-top:1px solid var(--rule);margin-top:2rem}
    .figures{display:grid;grid-template-columns:repeat(4,minmax(0,1fr));gap:1.6rem 2rem;margin:1.2rem 0 1.8rem}
    .figures.small{grid-template-columns:none;grid-auto-flow:column;grid-auto-columns:minmax(0,1fr);
    gap:1.1rem 1.6rem;margin:1.2rem 0}
    .figures>div{border-top:2px solid var(--ink);padding-top:.6rem;min-width:0}
    .figures.small>div{border-top:1px solid var(--rule)}
    dt{color:var(--soft);font-size:.92rem}
    dd{margin:0}
    .value{font-size:1.9rem;line-height:1.2;font-weight:620;letter-spacing:-.02em;overflow-wrap:anywhere}
    .small .value{font-size:1.25rem}
    .value,.change,td.n,th.n,tfoot .n{font-variant-numeric:tabular-nums lining-nums}
    .value .unit{font-size:.95rem;font-weight:500;color:var(--soft);letter-spacing:0;margin-left:.35em}
    .change{color:var(--soft);font-size:.92rem}
    .change b,.value .unit{font-weight:inherit;white-space:nowrap}
    .value .unit{font-weight:500}
    .value>span:not(.unit),.change span,td.n>span,th.n>span{margin-left:.17em}
    .sign{font-weight:inherit}.sign i{font-size:0}
    .sign::before{content:"\\2212";content:"\\2212"/""}
    .value small,.change small,td small,th small{font-size:.78em;color:var(--soft);font-weight:400}
    td small{display:inline-block;text-align:left}
    .w1{min-width:1ch}.w2{min-width:2ch}.w3{min-width:3ch}.w4{min-width:4ch}.w5{min-width:5ch}.w6{min-width:6ch}
    .w7{min-width:6.6ch}
    figure{margin:1.4rem 0 1rem}
    figcaption{font-weight:640;margin-bottom:.55rem}
    .plot{display:grid;grid-template-columns:auto minmax(0,1fr);column-gap:.6rem}
    .y{display:flex;flex-direction:column;justify-content:space-between;text-align:right;font-size:.8rem;
    color:var(--soft);white-space:nowrap;font-variant-numeric:tabular-nums}
    .y span{height:0;line-height:0}
    .plot svg{display:block;width:100%;height:15rem;overflow:visible}
    .x{grid-column:2;display:flex;margin-top:.35rem;font-size:.8rem;line-height:1.2rem;min-height:1.2rem;
    color:var(--soft);font-variant-numeric:tabular-nums}
    .x span{flex:1 1 0;width:0;display:flex;justify-content:center;white-space:nowrap}
    .x span:last-child{justify-content:flex-end}
    .grid,.zero{stroke:var(--rule);stroke-width:1;vector-effect:non-scaling-stroke}
    .zero{stroke:var(--soft)}
    .bar{fill:var(--bar)}.marked{fill:var(--accent)}.below{fill:var(--minus)}
    .of-months .bar{fill:var(--quiet)}
    .row-bar{display:block;width:100%;height:.7rem}
    .panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,23rem),1fr));gap:1.4rem 3rem;
    align-items:start;margin:1.1rem 0}
    .panels>*{min-width:0}
    .panels .plot svg{height:8.5rem}
    .panels figure{margin:0}
    .scroll{overflow-x:auto;margin:.4rem 0 1.2rem;background:
    linear-gradient(to right,var(--paper) 50%,transparent) 0/1.4rem 100% no-repeat local,
    linear-gradient(to left,var(--paper) 50%,transparent) 100%/1.4rem 100% no-repeat local,
    linear-gradient(to right,var(--soft),transparent) 0/.55rem 100% no-repeat scroll,
    linear-gradient(to left,var(--soft),transparent) 100%/.55rem 100% no-repeat scroll}
    table{border-collapse:collapse;width:100%;font-size:.95rem}
    caption{text-align:left}
    caption.shown{font-weight:640;padding-bottom:.4rem}
    caption.unseen span,.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);
    white-space:nowrap}
    th,td{padding:.38rem .5rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule);font-weight:400}
    th:first-child,td:first-child{padding-left:0}
    th:last-child,td:last-child{padding-right:0}
    thead th{color:var(--soft);font-size:.85rem;vertical-align:bottom;border-bottom-color:var(--soft)}
    thead td{border-bottom-color:var(--soft)}
    tfoot th,tfoot td{border-top:1px solid var(--soft);border-bottom:0;font-weight:640}
    .sum th,.sum td{font-weight:640;border-bottom-color:var(--soft)}
    .n{text-align:right}
    td.n,.day{white-space:nowrap}
    td.soft{color:var(--soft)}
    td.minus,.value.minus{color:var(--minus)}
    .id{overflow-wrap:anywhere;min-width:9rem}
    .code{color:var(--soft);font-size:.85em;font-variant-numeric:tabular-nums;display:inline-block;min-width:1.65em}
    .bar-cell{width:20%;min-width:4.5rem;vertical-align:middle}
    .meaning{display:block;font-size:.88rem}
    details{margin:.4rem 0 1.2rem}
    summary{cursor:pointer;color:var(--accent);font-size:.95rem;padding:.25rem 0;width:fit-content}
    .exceptions{list-style:none;margin:1rem 0;padding:0;display:grid;gap:1.1rem 3rem;
    grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr))}
    .exceptions li{display:grid;grid-template-columns:3.6rem minmax(0,1fr);border-top:1px solid var(--rule);
    padding-top:.7rem}
    .exceptions .times{font-size:1.25rem;line-height:1.3rem;font-weight:620;font-variant-numeric:tabular-nums}
    .exceptions p{margin:.15rem 0}
    .facts{display:grid;grid-template-columns:minmax(8rem,max-content) minmax(0,1fr);gap:.35rem 1.6rem;margin:1rem 0 1.6rem}
    .facts dd{overflow-wrap:anywhere}
    code,.mono{font-family:ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;font-size:.87em}
    .commands dt{margin-top:.8rem}
    .commands code{display:block;background:var(--wash);padding:.55rem .8rem;border-radius:4px;overflow-wrap:anywhere}
    .panels .of-months .odd{visibility:hidden}
    @media (max-width:60rem){.figures{grid-template-columns:repeat(2,minmax(0,1fr))}}
    @media (max-width:40rem){header,main,nav{padding-left:1.1rem;padding-right:1.1rem}header{padding-top:2rem}
    .figures{grid-template-columns:minmax(0,1fr);gap:1.1rem}
    .figures.small{grid-auto-flow:row;grid-auto-columns:auto;gap:.7rem}
    .small>div{display:grid;grid-template-columns:minmax(0,1fr) auto;column-gap:1rem;align-items:baseline}
    .small .change{grid-column:1/-1}
    .value{font-size:1.7rem}.small .value{font-size:1.15rem}
    .x .odd{visibility:hidden}
    .share,.wide{display:none}
    table{font-size:.88rem}
    .id{min-width:4.8rem}
    .code{min-width:0}
    .plot svg{height:11rem}
    .facts{grid-template-columns:minmax(0,1fr);gap:0}.facts dd{margin-bottom:.7rem}
    .bar-cell{width:18%;min-width:2.6rem}
    th,td{padding-left:.3rem;padding-right:.3rem}}
    @media print{:root{--paper:#fff;--ink:#000;--soft:#444;--rule:#ccc;--wash:#f4f4f4;--accent:#0a5f73;--quiet:#6b9ba7;
    --minus:#a8321a;--bar:#3c8799}
    @page{margin:12mm 13mm}
    *{print-color-adjust:exact;-webkit-print-color-adjust:exact}
    html{font-size:75%}
    header,main{max-width:none;padding:0}
    nav,.skip,details:not([open]){display:none}
    summary{list-style:none;color:inherit;font-weight:640;font-size:.85rem;padding:0}
    section{padding:.7rem 0 0}section+section{margin-top:.7rem}
    p{margin:.2rem 0 .5rem;max-width:none}
    h2,h3,figcaption,caption,section>p{break-after:avoid}
    p,figure,tr,table:not(:has(tbody tr:nth-child(12))),.figures>div,.exceptions li,.plot{break-inside:avoid}
    thead{display:table-header-group}tfoot{display:table-row-group}
    thead tr,tbody tr:nth-child(-n+2){break-after:avoid}tfoot tr{break-before:avoid}
    .scroll{overflow:visible;background:none;margin:.2rem 0 .7rem}
    th,td{padding:.16rem .28rem}
    .figures,.figures.small{gap:.7rem 1.2rem;margin:.6rem 0}
    .figures{grid-template-columns:repeat(4,minmax(0,1fr))}
    .value{font-size:1.35rem}.small .value{font-size:1.1rem}
    .panels,.pair:not(:has([open])){display:grid;grid-template-columns:repeat(2,minmax(0,1fr));
    gap:.6rem 1.6rem;margin:.5rem 0}
    .bar-cell{width:16%}#basis .bar-cell,#trust .bar-cell{display:none}
    .pair .of-months .odd{visibility:hidden}
    .exceptions{grid-template-columns:repeat(2,minmax(0,1fr));gap:.6rem 1.6rem;margin:.5rem 0}
    .exceptions li{padding-top:.4rem;grid-template-columns:2.4rem minmax(0,1fr);font-size:.9rem}.exceptions p{margin:0}
    figure{margin:.6rem 0}
    .id{min-width:7.5rem}
    .plot svg,.panels .plot svg{height:6rem}
    details{margin:.2rem 0}
    table{font-size:.82rem}thead th{font-size:.76rem}}
    """
}
